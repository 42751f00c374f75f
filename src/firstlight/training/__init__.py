"""One training run: its parts, its fit, what resumes it and what it starts from."""
