"""Rows of searching, counting and sets in the tables that walk the catalogue."""

from __future__ import annotations

ARGUMENTS = {
    "searchsorted": (
        "@(v, x) | @(x.sort(2).values, x) | @(v, z) | @(v, 0.5) | "
        "@(x.sort(2).values, y, right=True)"
    ),
    "bucketize": "v | v, right=True | @(0.5, v)",
    "isin": "y | @(k, k) | @(x, v) | 1.0 | @(1.0, x)",
    "bincount": "@(k.reshape(-1).abs()) | @(k.reshape(-1).abs(), x.reshape(-1))",
    "unique": " | True, True, True | dim=1 | @(k) | @(k, dim=2)",
    "unique_consecutive": " | True, True | dim=1 | @(k) | @(k, dim=2)",
    "histc": "4 | 4, -1, 1",
    "histogram": "4 | v.sort().values | 3, weight=y | 3, density=True",
    "histogramdd": "2 | 2, weight=y[..., 0]",
}
# Edges of bins in float16 are those of `linspace`, rounded once; PyTorch steps in halves.
NOT_COMPARED = {"histogram", "histogramdd"}
