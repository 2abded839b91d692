"""Rows of special functions in the tables that walk the catalogue."""

from __future__ import annotations

import numpy as np

import numgrad as ng

NODES = {
    "torch.igamma(h.detach(), h)": ("IgammaBackward0", "other self"),
    "torch.igammac(h.detach(), h)": ("IgammacBackward0", "other self"),
    "torch.lgamma(h)": ("LgammaBackward0", "self"),
    "torch.digamma(h)": ("DigammaBackward0", "self"),
    "torch.polygamma(2, h)": ("PolygammaBackward0", "n self"),
    "torch.mvlgamma(h + 2, 2)": ("MvlgammaBackward0", "p self"),
    "torch.special.entr(p)": ("SpecialEntrBackward0", "self"),
    "torch.special.xlog1py(p, v)": ("SpecialXlog1PyBackward0", "other self"),
    "torch.special.xlog1py(2.0, v)": ("SpecialXlog1PyBackward1", "other self"),
    "torch.special.xlog1py(p, 2.0)": ("SpecialXlog1PyBackward2", "other self"),
}
DISPATCH = {
    "special.expit": lambda x, y: ng.special.expit(x),
}
NOT_PYTORCHS = {"beta", "betaln"}
TORCH = {
    # PyTorch has no derivative for the first argument.
    "igamma": lambda m, a, b: m.igamma(a.detach(), b),
    "igammac": lambda m, a, b: m.igammac(a.detach(), b),
    "polygamma": lambda m, a, n: m.polygamma(int(n), a),
    "entr": lambda m, a: m.special.entr(a),
    "xlog1py": lambda m, a, b: m.special.xlog1py(a, b),
    "xlog1py_of_number": lambda m, other, a: m.special.xlog1py(a, other),
    "xlog1py_by_number": lambda m, a, b: m.special.xlog1py(a, b),
}
_NEAR_ZEROS = "PyTorch's is some ten roundings off near the zeros and for negative numbers"
_TEN_DIGITS = "PyTorch's derivative of digamma has ten digits, and none at negative integers"
_POLES = "PyTorch adds up terms on either side of a pole"
_TAILS = "PyTorch's is computed in the type of its arguments, and off in the tails"
# Where arguments are special (0, inf, nan, negative) results are PyTorch's.
SPECIAL_VALUES = {
    ("lgamma", "value"): (lambda x: x < 2.5, _NEAR_ZEROS),
    ("lgamma", "gradient"): (lambda x: x < 2.5, _NEAR_ZEROS),
    ("digamma", "value"): (lambda x: x < 2.5, _NEAR_ZEROS),
    ("digamma", "gradient"): (lambda x: abs(x) > 0, _TEN_DIGITS),
    ("polygamma", "value"): (lambda x, n: (x < 0) | (abs(x) > 1e9), _POLES),
    ("polygamma", "gradient"): (lambda x, n: (x < 0) | (abs(x) > 1e9), _POLES),
    ("mvlgamma", "value"): (lambda x, p: x < 3.5, _NEAR_ZEROS),
    ("mvlgamma", "gradient"): (lambda x, p: x < 3.5, _NEAR_ZEROS),
    **{
        (name, what): (lambda a, x: (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x), _TAILS)
        for name in ("igamma", "igammac")
        for what in ("value", "gradient")
    },
}
