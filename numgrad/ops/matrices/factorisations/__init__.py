"""Factorisations of matrices: by Cholesky, LU, LDL, QR, and reflections."""
