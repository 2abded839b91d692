"""Rows of special functions in the tables that walk the catalogue."""

from __future__ import annotations

import math

import numpy as np

import numgrad as ng
from numgrad.ops.core import primitive as _primitive

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
    "torch.special.zeta(p.detach() + 1, p)": ("SpecialZetaBackward0", "other self"),
    "torch.special.zeta(2.0, p)": ("SpecialZetaBackward1", "other self"),
    "torch.special.zeta(p + 1, 2.0)": ("SpecialZetaBackward2", ""),
}
DISPATCH = {
    "igamma": lambda x, y: ng.igamma(x, y),
    "igammac": lambda x, y: ng.igammac(x, y),
    "mvlgamma": lambda x, y: ng.mvlgamma(x, 2),
    "polygamma": lambda x, y: x.polygamma(1) + ng.polygamma(2, y),
    "special.gammainc": lambda x, y: ng.special.gammainc(x, y),
    "special.gammaincc": lambda x, y: ng.special.gammaincc(x, y),
    "special.log_softmax": lambda x, y: ng.special.log_softmax(x, 1),
    "special.logit": lambda x, y: ng.special.logit(x / 4),
    "special.logsumexp": lambda x, y: ng.special.logsumexp(x, 1),
    "special.multigammaln": lambda x, y: ng.special.multigammaln(x, 2),
    "special.polygamma": lambda x, y: ng.special.polygamma(1, x),
    "special.softmax": lambda x, y: ng.special.softmax(x, 1),
    "special.xlog1py": lambda x, y: ng.special.xlog1py(x, y),
    "special.xlogy": lambda x, y: ng.special.xlogy(x, y),
    "special.betainc": lambda x, y: ng.special.betainc(x * x, 2.0, y.sigmoid()),
    "special.zeta": lambda x, y: ng.special.zeta(x * x + 2, y * y + 1) + ng.special.zeta(2.5, y),
    "special.expit": lambda x, y: ng.special.expit(x),
}
NOT_PYTORCHS = {"beta", "betaln", "betainc"}
TORCH = {
    "beta": lambda m, a, b: m.special.beta(a, b),
    "betaln": lambda m, a, b: m.special.betaln(a, b),
    # PyTorch has no derivative for the first argument.
    "igamma": lambda m, a, b: m.igamma(a.detach(), b),
    "igammac": lambda m, a, b: m.igammac(a.detach(), b),
    "zeta": lambda m, a, b: m.special.zeta(a.detach(), b),
    "zeta_of_number": lambda m, b, a: m.special.zeta(a, b),
    "zeta_by_number": lambda m, a, b: m.special.zeta(a.detach(), b),
    "betainc": lambda m, a, b, x: m.special.betainc(a, b, x),
    "polygamma": lambda m, a, n: m.polygamma(int(n), a),
    "entr": lambda m, a: m.special.entr(a),
    "xlog1py": lambda m, a, b: m.special.xlog1py(a, b),
    "xlog1py_of_number": lambda m, other, a: m.special.xlog1py(a, other),
    "xlog1py_by_number": lambda m, a, b: m.special.xlog1py(a, b),
}

_NORMAL = ["erfcx", "ndtr", "log_ndtr", "ndtri"]
_SCALED_K = ["scaled_modified_bessel_k0", "scaled_modified_bessel_k1"]
_WAVES = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"]
_UNDERIVED = ["modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0"]
_UNDERIVED += ["modified_bessel_k1", *_SCALED_K, *_WAVES, "spherical_bessel_j0"]
_UNDERIVED += ["airy_ai"]
_UNARY = [*_NORMAL, "i0", "i0e", "i1", "i1e", *_UNDERIVED]
_POLYNOMIALS = [
    *[f"{shifted}chebyshev_polynomial_{kind}" for shifted in ("", "shifted_") for kind in "tuvw"],
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]
NODES |= {
    "torch.special.erfcx(h)": ("SpecialErfcxBackward0", "result self"),
    "torch.special.log_ndtr(h)": ("SpecialLogNdtrBackward0", "result self"),
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
OWN_DERIVATIVES = {*_UNDERIVED, *_POLYNOMIALS, "zeta_by_number"}
OWN_NODES = {"ndtr"}
TORCH["density_over_ndtr"] = lambda m, a: _primitive.CATALOGUE["density_over_ndtr"](a)
NOT_PYTORCHS |= {"density_over_ndtr"}  # the derivative of log_ndtr: test_tails.py
# Nodes that PyTorch has not, for it has no such function, or none that is one operation.
PARTS = {"BetaBackward0", "BetalnBackward0", "SpecialBetaincBackward0"} | {
    f"Special{name.title().replace('_', '')}Backward0"
    for name in {*_UNDERIVED, *_POLYNOMIALS} | OWN_NODES
}
LESS_ACCURATE = {
    **dict.fromkeys(("igamma", "igammac"), (2e-6, 1e-9)),  # of 30 and 30 PyTorch has nine digits
    "ndtr": (5e-7, 1e-15),  # PyTorch adds erf to 1
    "laguerre_polynomial_l": (1e-5, 1e-13),
    **dict.fromkeys(_WAVES, (1e-06, 1e-07)),
}
CANCELLING = {"erfcx": "2 x erfcx(x) - 2/sqrt(pi) where x is large"}
UNDECIDED = {
    # PyTorch's gradient, the derivative of digamma, has ten digits: test_gamma.py has them.
    "digamma": [0.5, 1.0, -1.0, -2.0, 3.0, -7.25, 30.0, -math.inf],
    "log_ndtr": [-math.inf],  # inf here, nan in PyTorch
    # PyTorch's gradient is nan at 0 and inf where it multiplies 0 by the logarithm, and of another
    # sign where a is negative, for which there is no function.
    **{name: [0.0, -0.0, math.inf, -math.inf, -1.0, -2.0, -7.25] for name in ("igamma", "igammac")},
    # PyTorch's recurrences stop at nan, at a number that nothing was written to.
    **{name: [math.nan] for name in _POLYNOMIALS},
}
LOST_SECOND_DERIVATIVES = {
    "lgamma": "PyTorch's derivative of digamma has ten digits, and is finite at poles",
    "mvlgamma": "a sum of these",
    **dict.fromkeys(
        ("igamma", "igammac", "zeta", "zeta_by_number"), "of the first argument PyTorch has none"
    ),
}
NOT_KEPT = {"SpecialLogNdtrBackward0": "result"}
KEPT_TOO = {"SpecialZetaBackward2": "other self"}  # PyTorch has no derivative for it
DIFFER = {
    ("ndtr", "value"): (lambda x: x < -8, "PyTorch adds erf to 1"),
    ("ndtr", "gradient"): (lambda x: abs(x) > 15, "PyTorch rounds x/sqrt(2) before it is squared"),
    ("log_ndtr", "value"): (lambda x: x > 15, "PyTorch rounds x/sqrt(2) before it is squared"),
    ("i1", "gradient"): (lambda x: abs(x) > 80, "PyTorch subtracts inf from inf"),
    ("ndtri", "gradient"): (lambda x: x < 1e-10, "exp(y**2/2), of which PyTorch's y is less exact"),
    ("erfcx", "gradient"): (lambda x: x > 15, "of two terms that cancel few digits are left"),
    ("log_ndtr", "gradient"): (lambda x: abs(x) > 8, "PyTorch adds the exponent to the value"),
    ("i0e", "gradient"): (lambda x: abs(x) > 500, "of two terms that cancel few digits are left"),
    ("i1e", "gradient"): (
        lambda x: (x == 2) | (abs(x) > 500),
        "of two terms that cancel few digits are left",
    ),
    **{
        (name, "value"): (lambda x: abs(x) < 1e-37, "PyTorch multiplies inf by 0 where 1/x is inf")
        for name in ("modified_bessel_k1", *_SCALED_K)
    },
    **{
        (name, "value"): (
            lambda x: (abs(x) > 1.9) | (abs(x) < 1e-30),
            "errors of 1e-8 in PyTorch's",
        )
        for name in _WAVES
    },
    **{
        (name, "value"): (lambda x, n: np.isnan(x), "PyTorch has what nothing was written to")
        for name in _POLYNOMIALS
    },
}
_NEAR_ZERO = "PyTorch's digamma is some fifty roundings off near its zero"
_TEN_DIGITS = "PyTorch's derivative of digamma has ten digits, and none at negative integers"
_POLES = "PyTorch adds up terms on either side of a pole"
_TAILS = "PyTorch's is computed in the type of its arguments, and off in the tails"
# Where arguments are special (0, inf, nan, negative) results are PyTorch's.
_NO_TERMS = "PyTorch divides 0 by 0 where all terms are 0"
DIFFER |= {
    ("zeta", "value"): (lambda s, q: (s > 1e30) & (q > 1), _NO_TERMS),
    ("zeta", "gradient"): (lambda s, q: (s > 1e30) & (q > 1), _NO_TERMS),
    ("zeta_by_number", "value"): (lambda s, q: s > 1e30, _NO_TERMS),
    ("airy_ai", "value"): (
        lambda x: ((x < -2) | (x > 103)) & np.isfinite(x),
        "PyTorch's errors are up to 1e-8, and it has nan and nonsense far out",
    ),
    ("lgamma", "gradient"): (lambda x: x == 1.5, _NEAR_ZERO),
    ("digamma", "value"): (lambda x: x == 1.5, _NEAR_ZERO),
    ("digamma", "gradient"): (
        lambda x: (x.dtype == np.float64) | ((x < 0) & (x == np.floor(x))),
        _TEN_DIGITS,
    ),
    ("polygamma", "value"): (lambda x, n: x == -8.5, _POLES),
    ("mvlgamma", "gradient"): (lambda x, p: abs(x) < 0.01, _POLES),
    **{
        (name, "value"): (lambda a, x: (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x), _TAILS)
        for name in ("igamma", "igammac")
    },
    **{  # and 0 times the logarithm of 0 or inf is nan there, and a sign left out where a < 0
        (name, "gradient"): (lambda a, x: (a < 0) | (x >= 0), _TAILS)
        for name in ("igamma", "igammac")
    },
}
ARGUMENTS = {
    **dict.fromkeys(("igamma", "igammac"), "y | @(x, y[:1])"),
    "mvlgamma": "2",
    "polygamma": "@(2, x)",
    "polygamma_": "2",
}
HALF_ROUNDED = {"beta", "betainc", "betaln", "density_over_ndtr", "igamma", "igammac", "mvlgamma"}
# Scalar functions with loops, of few digits to lose: numbers of float32 are computed in float64.
IN_DOUBLE = {"beta", "betaln", "digamma", "igamma", "igammac", "mvlgamma", "polygamma"}
IN_DOUBLE |= {"airy_ai", "betainc", "zeta", "zeta_of_number", "zeta_by_number"}
