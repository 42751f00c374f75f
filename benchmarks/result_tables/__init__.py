"""The tables of RESULTS.md: their plan, the runs, what is kept of each run, the comparisons, and the page."""
