"""Compiled functions: traced once, then run as loops that Numba compiled."""
