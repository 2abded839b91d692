"""Rows of short-time Fourier transforms in the tables that walk the catalogue: compositions."""
