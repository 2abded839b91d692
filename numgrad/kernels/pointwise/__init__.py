"""Elementwise kernels: a scalar function applied to every element."""
