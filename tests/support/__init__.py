"""What tests share: brute force, random problems, tables, and the checks of several results."""
