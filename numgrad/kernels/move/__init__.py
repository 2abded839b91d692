"""Kernels that move elements: copies, gathers, scatters, and in which order to keep them."""
