"""Kernels of what slides windows over arrays: convolutions, pooling, resampling."""
