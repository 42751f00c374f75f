"""Parts that the panels of the playground share: the fields of a request, and fragments of HTML."""
