"""Scalar functions that kernels and users' own ``@njit`` code call: real and complex."""
