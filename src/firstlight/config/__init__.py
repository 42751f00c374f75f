"""The configuration: its schema, its checks, its help and its messages."""
