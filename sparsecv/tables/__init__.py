"""Files and data sets to named columns of numbers."""
