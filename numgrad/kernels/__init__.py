"""Numba kernels: NumPy arrays in, NumPy arrays out. Nothing here has heard of a tensor."""
