"""Kernels of factorisations and triangular systems, for batches of matrices."""
