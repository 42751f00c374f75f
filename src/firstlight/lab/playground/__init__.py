"""The playground, a web page on this machine for trying trained runs."""
