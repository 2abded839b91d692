"""Indexing, gathering and scattering, and their derivative rules."""
