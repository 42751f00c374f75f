"""The kinds of networks, and what the commands do with each: load, evaluate, explain, show, and a baseline."""
