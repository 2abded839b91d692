"""Elementwise operations: the primitive, its kernels, and the one kernel of all its gradients."""
