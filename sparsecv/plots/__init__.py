"""The sections of a result, the page that shows them, and pictures (matplotlib)."""
