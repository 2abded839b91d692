"""Which methods in place PyTorch has as functions, too: ``torch.exp_(x)`` beside ``x.exp_()``."""

from __future__ import annotations

__all__ = ["IN_PLACE_FUNCTIONS"]

# A newer operation has the method alone. None of these has `out`.
_NAMES = """
abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_
atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ erf_
erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_
log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ selu_
sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_ trunc_ xlogy_ zero_
"""
IN_PLACE_FUNCTIONS = frozenset(_NAMES.split())
