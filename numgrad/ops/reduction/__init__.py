"""Reductions, scans and sorting, and their derivative rules."""
