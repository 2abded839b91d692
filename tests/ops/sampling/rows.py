"""Rows of samples of distributions in the tables that walk the catalogue: none yet."""
