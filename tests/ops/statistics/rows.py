"""Rows of statistics, and of numbers on grids, in the tables that walk the catalogue."""

from __future__ import annotations

import numgrad as ng

NODES = {
    "torch.block_diag(m, v)": ("BlockDiagBackward0", ""),
    "torch.median(m)": ("MedianBackward0", "result self"),
    "torch.median(m, 0)[0]": ("MedianBackward1", "dim indices keepdim self_sym_sizes"),
    "torch.nanmedian(m)": ("NanmedianBackward0", "result self"),
    "torch.nanmedian(m, 0)[0]": ("NanmedianBackward1", "dim indices keepdim self_sym_sizes"),
    "torch.cdist(m, m)": ("CdistBackward0", "p result x1 x2"),
    "torch.pdist(m)": ("PdistBackward0", "p result self"),
    "torch.dist(m, m)": ("DistBackward0", "other p result self"),
    "torch.renorm(m, 2, 0, 1)": ("RenormBackward0", "dim maxnorm p self"),
    "torch.mode(m, 0)[0]": ("ModeBackward0", "dim indices keepdim self_sym_sizes"),
}
ARGUMENTS = {
    "diff": " | 2, 0 | prepend=x | append=y, dim=0 | @(b)",
    "gradient": " | dim=2 | spacing=2.0, dim=(0, 2) | @(v, spacing=(v.cumsum(0),))",
    "trapezoid": " | y | dx=2.0, dim=0 | x[0, 0] | @(k)",
    "trapz": " | y | dx=2.0, dim=0",
    "cumulative_trapezoid": " | y | dx=2.0, dim=0 | x[0, 0] | @(k)",
    "cov": "@(m) | @(v) | @(m, correction=0) | @(m, aweights=m[0].abs())",
    "corrcoef": "@(m) | @(v)",
    **dict.fromkeys(
        ["quantile", "nanquantile"],
        "0.3 | 0.5, 1 | 0.5, 2, True | 0.3, 0, interpolation='lower' | torch.tensor([0.2, 0.5]), 1",
    ),
    "mode": " | 0 | 1, True | @(k)",
    **dict.fromkeys(["median", "nanmedian"], " | 0 | 1, True | @(k) | @(k, 1)"),
    "cdist": "y | y, 1.0 | @(x[0], y, 3.0)",
    "pdist": "@(m) | @(m, 1)",
    "dist": "y | y[0], 3 | @(c, y)",
    "renorm": "2, 0, 1.0 | 1, -1, 0.5 | @(c, 2, 0, 1.0)",
    "combinations": "@(v) | @(v, 3, True)",
    "cartesian_prod": "@(v, u) | @(v)",
    "block_diag": "@(m, v, z) | @(m)",
}
DISPATCH = {
    "trapz": lambda x, y: ng.trapz(x, y) + ng.trapz(y, dx=2.0),
    "cumulative_trapezoid": lambda x, y: ng.cumulative_trapezoid(x, y, dim=0),
    "median": lambda x, y: x.median(),
    "median along a dim": lambda x, y: x.median(1),
    "nanmedian": lambda x, y: ng.nanmedian((x / x) * y) + x.nanmedian(0, True).values,
    "mode": lambda x, y: x.round().mode(1),
    "dist": lambda x, y: x.dist(y, 3) + ng.dist(x, x),
    "pdist": lambda x, y: ng.nn.functional.pdist(x) + ng.pdist(y, 1.0),
    "cov": lambda x, y: ng.cov(x) + y.cov(correction=0),
    "cov with weights": lambda x, y: x.cov(aweights=y[0].abs().detach()),
    "corrcoef": lambda x, y: x.corrcoef(),
    "diff": lambda x, y: ng.diff(x) + ng.diff(y, 1, prepend=x[:, :1], append=y[:, :1])[:, :3],
    "trapezoid": lambda x, y: ng.trapezoid(x) + ng.trapezoid(x, y) + ng.trapezoid(y, dim=1, dx=2.0),
}
DIFFERENT_GRADIENTS = {
    "torch.renorm(x, 2, 0, 1.0)": "as the products of the rule lie",
    "torch.block_diag(m, v, z)": "the row of a gradient that is one lies as a part of it",
}
REAL_ONLY = {"cdist", "pdist", "median", "median_along", "nanmedian", "nanmedian_along", "mode"}
PARTS_FOR_REAL = {"solve_tridiagonal"}
PARTS = {"SolveTridiagonalBackward0"}
# Which PyTorch has not.
LEFT_OUT = {"interp", "cubic_spline", "piecewise_polynomial"}
NOT_COMPARED = {"interp", "cubic_spline", "piecewise_polynomial"}
HALF_REFUSED = {"cdist", "pdist"}
COMPLEX: dict[str, list[str]] = {
    "block_diag": ["torch.block_diag(m, v, p)"],
    "dist": ["torch.dist(m, n.T)"],
    "renorm": ["torch.renorm(m, 2, 0, 1.0)"],
    **{
        name: []
        for name in (
            *("cdist", "pdist", "median", "median_along", "nanmedian", "nanmedian_along", "mode"),
            "solve_tridiagonal",
        )
    },
}
