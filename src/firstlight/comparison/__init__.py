"""Statistics of a comparison: intervals of means and accuracies, paired tests, and the seeds that would decide."""
