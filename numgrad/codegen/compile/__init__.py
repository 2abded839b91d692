"""Compiling kernels with Numba, and keeping what was compiled on disk."""
