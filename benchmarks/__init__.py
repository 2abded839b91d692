"""Benchmarks for asv; `figures.py` compares with PyTorch."""
