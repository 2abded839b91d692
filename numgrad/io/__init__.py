"""Printing, copying, and files."""
