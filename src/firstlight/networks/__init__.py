"""The networks: plain torch modules that know nothing of files, configs on disk or training loops."""
