"""The sections of a result, made once, and printed or written as a page."""
