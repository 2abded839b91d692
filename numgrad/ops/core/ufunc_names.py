"""NumPy's ufuncs, by name, and the elementwise operations that do what they do."""

from __future__ import annotations

__all__ = ["UFUNCS"]

# Names of ufuncs that are names here, of the same operation.
_SAME = """
absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or
bitwise_xor ceil copysign cos cosh deg2rad divide exp exp2 expm1 float_power floor floor_divide fmax
fmin fmod greater greater_equal heaviside hypot isfinite isinf isnan less less_equal log log10
log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor matmul maximum
minimum multiply negative not_equal positive rad2deg reciprocal remainder sign signbit sin sinh sqrt
square subtract tan tanh trunc
"""
UFUNCS: dict[str, str] = {
    **{name: name for name in _SAME.split()},
    "conjugate": "conj_physical",
    "degrees": "rad2deg",
    "equal": "eq",
    "fabs": "abs",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "radians": "deg2rad",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}
