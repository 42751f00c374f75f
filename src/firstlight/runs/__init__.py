"""What the entry scripts do: compose, build, train, evaluate, predict."""
