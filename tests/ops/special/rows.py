"""Rows of special functions in the tables that walk the catalogue."""

from __future__ import annotations

import numgrad as ng

NODES = {
    "torch.special.entr(p)": ("SpecialEntrBackward0", "self"),
    "torch.special.xlog1py(p, v)": ("SpecialXlog1PyBackward0", "other self"),
    "torch.special.xlog1py(2.0, v)": ("SpecialXlog1PyBackward1", "other self"),
    "torch.special.xlog1py(p, 2.0)": ("SpecialXlog1PyBackward2", "other self"),
}
DISPATCH = {
    "special.expit": lambda x, y: ng.special.expit(x),
}
TORCH = {
    "entr": lambda m, a: m.special.entr(a),
    "xlog1py": lambda m, a, b: m.special.xlog1py(a, b),
    "xlog1py_of_number": lambda m, other, a: m.special.xlog1py(a, other),
    "xlog1py_by_number": lambda m, a, b: m.special.xlog1py(a, b),
}

_UNARY = (
    "erfcx ndtr log_ndtr ndtri i0 i0e i1 i1e modified_bessel_i0 modified_bessel_i1 "
    "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
    "bessel_j0 bessel_j1 bessel_y0 bessel_y1 spherical_bessel_j0"
).split()
_POLYNOMIALS = [
    *[f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"],
    *"hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l".split(),
    "legendre_polynomial_p",
]
NODES |= {
    "torch.special.erfcx(h)": ("SpecialErfcxBackward0", "result self"),
    "torch.special.log_ndtr(h)": ("SpecialLogNdtrBackward0", "self"),
    "torch.special.ndtri(h)": ("SpecialNdtriBackward0", "result"),
    "torch.i0(h)": ("I0Backward0", "self"),
    "torch.special.i0e(h)": ("SpecialI0EBackward0", "result self"),
    "torch.special.i1(h)": ("SpecialI1Backward0", "result self"),
    "torch.special.i1e(h)": ("SpecialI1EBackward0", "result self"),
}
DISPATCH |= {
    "special.i1e": lambda x, y: ng.special.i1e(x),
    "special.bessel_j1": lambda x, y: ng.special.bessel_j1(x),
    "special.legendre_polynomial_p": lambda x, y: ng.special.legendre_polynomial_p(x, 3),
}
TORCH |= {name: lambda m, a, name=name: getattr(m.special, name)(a) for name in _UNARY}
TORCH |= {name: lambda m, a, n, name=name: getattr(m.special, name)(a, n) for name in _POLYNOMIALS}
# PyTorch has kernels of 16 bits for these alone.
HALF_REFUSED = {*_UNARY, *_POLYNOMIALS} - {"ndtr", "i0", "i0e", "i1", "i1e"}
