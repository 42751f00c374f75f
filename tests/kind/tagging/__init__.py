"""A kind of network that tags each word of a text."""
