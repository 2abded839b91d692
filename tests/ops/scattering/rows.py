"""Rows of scatters that reduce in the tables that walk the catalogue."""

from __future__ import annotations

from typing import Any

import numgrad as ng

_SAVED = "dim include_self index reduce result self"
NODES = {
    'torch.scatter_reduce(m, 1, torch.tensor([[0]]), k, "mean")': (
        "ScatterReduceBackward0",
        f"{_SAVED} src",
    ),
    'm.clone().scatter_reduce_(1, torch.tensor([[0]]), k, "amax")': (
        "ScatterReduceBackward0",
        f"{_SAVED} src",
    ),
    'torch.index_reduce(m, 0, torch.tensor([0, 1, 1]), k, "prod")': (
        "IndexReduceBackward0",
        f"{_SAVED} source",
    ),
}
ARGUMENTS = {
    **dict.fromkeys(["scatter_reduce", "scatter_reduce_"], "1, k, y, 'mean' | 1, k, y, 'amax'"),
    "index_reduce": "0, i, y[i], 'mean' | 0, i, y[i], 'prod', include_self=False",
    "index_reduce_": "0, i, y[i], 'amin'",
}
# Lengths have to add up to that of a dim.
LEFT_OUT = {"segment_reduce"}


def _order(y: Any) -> Any:
    return y.argsort(1)


DISPATCH = {
    "scatter_reduce": lambda x, y: x.scatter_reduce(1, _order(y), y, "prod"),
    "scatter_reduce in place": lambda x, y: (x * 1).scatter_reduce_(
        1, _order(y), y, "amax", include_self=False
    ),
    "index_reduce": lambda x, y: ng.index_reduce(x, 1, _order(y)[0], y, "mean"),
    "index_reduce in place": lambda x, y: (x * 1).index_reduce_(0, _order(x.T)[0], y, "amin"),
}
COMPLEX: dict[str, list[str]] = {
    "scatter_reduce": [],  # no derivative, as in PyTorch; the values are in test_reducing.py
    "index_reduce": [],
}
REAL_ONLY = {"scatter_reduce", "index_reduce"}
