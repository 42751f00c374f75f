"""The playground: a page on this machine where people try trained runs."""
