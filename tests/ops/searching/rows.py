"""Rows of searching, counting and sets in the tables that walk the catalogue."""

from __future__ import annotations

import numgrad as ng

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
DISPATCH = {
    "searchsorted": lambda x, y: ng.searchsorted(y[0].sort()[0].detach(), x),
    "searchsorted of a number": lambda x, y: ng.searchsorted(y[0].detach(), 0.5, right=True),
    "bucketize": lambda x, y: ng.bucketize(x, y[0].detach(), out_int32=True),
    "isin": lambda x, y: ng.isin(x, y) | ng.isin(x, x[0]),
    "isin of numbers": lambda x, y: ng.isin(x.round(), 1) & ng.isin(2.0, x),
}
