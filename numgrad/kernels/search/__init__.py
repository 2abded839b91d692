"""Kernels that look for values: binary search, counts, groups of elements."""
