"""Modes of a thread: whether gradients are recorded, levels of `numgrad.func`, anomaly mode."""
