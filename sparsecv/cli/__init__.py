"""The command line: text in, text out."""
