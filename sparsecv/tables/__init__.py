"""Files, data frames and data sets become named columns of numbers."""
