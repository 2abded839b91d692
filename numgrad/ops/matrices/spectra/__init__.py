"""Eigenvalues and singular values of matrices, all or a few."""
