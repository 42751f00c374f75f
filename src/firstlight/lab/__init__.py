"""What reads finished runs and nothing else: reports, figures and pages of explore, and the playground."""
