"""What a run on disk is: its folder, its identity, its record and its history."""
