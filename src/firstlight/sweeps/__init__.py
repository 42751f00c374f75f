"""Many runs of one command: the jobs of a grid or a search, their launchers and their progress."""
