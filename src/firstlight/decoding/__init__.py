"""From logits to new tokens: ids in, ids out. Knows torch and the networks' interface, nothing of text."""
