"""Many runs of one command: the jobs of a grid or a search, how they are launched, and how far they are."""
