"""What the panels of the playground share: the fields of a request, and parts of the page as HTML."""
