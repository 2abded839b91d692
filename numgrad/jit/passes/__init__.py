"""Passes over the graph: simplification, algebra, motion of views and joins."""
