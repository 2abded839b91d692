"""Reductions and scans: sums, extrema, moments, cumulative sums."""
