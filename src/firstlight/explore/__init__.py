"""What a run has learned, as numbers (`insight`) and as figures of them, one module for each kind of figure."""
