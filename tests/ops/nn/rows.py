"""Rows of neural networks in the tables that walk the catalogue."""
