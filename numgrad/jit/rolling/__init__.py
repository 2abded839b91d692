"""Loops found in traces."""
