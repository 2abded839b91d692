"""Loops and branches of a traced function, and what their bodies read."""
