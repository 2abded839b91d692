"""Rows of special functions in the tables that walk the catalogue."""

from __future__ import annotations

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
TORCH = {
    "polygamma": lambda m, a, n: m.polygamma(int(n), a),
    "entr": lambda m, a: m.special.entr(a),
    "xlog1py": lambda m, a, b: m.special.xlog1py(a, b),
    "xlog1py_of_number": lambda m, other, a: m.special.xlog1py(a, other),
    "xlog1py_by_number": lambda m, a, b: m.special.xlog1py(a, b),
}
