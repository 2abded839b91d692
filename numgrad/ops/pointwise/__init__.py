"""Elementwise operations and their derivative rules."""
