"""NumPy's names: which function of the registry does what a ufunc or function of NumPy does.

`UFUNCS` maps the names of ufuncs, `REDUCTIONS` those of their methods `reduce` and `accumulate`.
`NAMES` maps functions: to their parameters in NumPy's order, and to the name of one of ours or to a
function of the same parameters. `numgrad.ops.numpy.protocol` reads them. A parameter is written as

``*a``
    an operand, made a tensor if it is an array or a list; ``**a``: a sequence of them; ``***a``:
    any number of them
``axis:dim``
    an option that has another name here; None stands for not given
``ddof:correction=0``
    the same with NumPy's default, where ours is another
``axis~dim=None``
    a dim, None for that of all elements in one row; and NumPy's default
``-order=C``
    what tensors don't have: only NumPy's default (None without ``=``) may be given
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.core.registry import FUNCTIONS

__all__ = ["FACTS", "NAMES", "OF_TENSORS", "REDUCTIONS", "UFUNCS", "WRITERS", "Target", "alike"]

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

# Of these ours takes no numbers, and tensors of one dtype only.
OF_TENSORS = ("heaviside",)

# The method of a ufunc, and the function that does it along a dim.
REDUCTIONS: dict[tuple[str, str], str] = {
    ("add", "reduce"): "sum",
    ("multiply", "reduce"): "prod",
    ("maximum", "reduce"): "amax",
    ("minimum", "reduce"): "amin",
    ("logical_and", "reduce"): "all",
    ("logical_or", "reduce"): "any",
    ("add", "accumulate"): "cumsum",
    ("multiply", "accumulate"): "cumprod",
}


def alike(a: Any, b: Any) -> list[Tensor]:
    """Return two operands as tensors of one dtype."""
    dtype = result_dtype([a, b])
    return [
        operand.to(dtype)
        if isinstance(operand, Tensor)
        else FUNCTIONS["scalar_tensor"](operand, dtype=dtype)
        for operand in (a, b)
    ]


def _compared(name: str) -> Callable[..., Any]:
    """Return a comparison of tensors of one dtype as one of any operands."""
    return lambda a, b, **options: FUNCTIONS[name](*alike(a, b), **options)


def _array_equal(a: Any, b: Any) -> bool:
    one, other = alike(a, b)
    return one.shape == other.shape and bool((one == other).all())


def _dot(a: Any, b: Any, **options: Any) -> Any:
    if not (isinstance(a, Tensor) and isinstance(b, Tensor) and a.ndim and b.ndim):
        return FUNCTIONS["mul"](a, b, **options)
    if b.ndim <= 2:
        return FUNCTIONS["matmul"](a, b, **options)
    return FUNCTIONS["tensordot"](a, b, dims=([a.ndim - 1], [b.ndim - 2]), **options)


def _expand_dims(a: Tensor, axis: Any) -> Tensor:
    axes = axis if isinstance(axis, tuple) else (axis,)
    ndim = a.ndim + len(axes)
    for place in sorted([each % ndim if -ndim <= each < 0 else each for each in axes]):
        a = a.unsqueeze(place)
    return a


def _flip(m: Tensor, axis: Any = None) -> Tensor:
    axes = range(m.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return FUNCTIONS["flip"](m, tuple(axes))


def _full_like(a: Tensor, fill_value: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    return a.new_full(a.shape if shape is None else _lengths(shape), fill_value, dtype=dtype)


def _like(value: int) -> Callable[..., Tensor]:
    return lambda a, **options: _full_like(a, value, **options)


def _lengths(shape: Any) -> tuple[int, ...]:
    """Return a shape, which in NumPy may be one number."""
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _norm(x: Tensor, p: Any = None, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return a norm of vectors, or Frobenius' of matrices."""
    of_matrices = len(dim) == 2 if isinstance(dim, tuple) else dim is None and x.ndim == 2
    if p not in (None, "fro") and (of_matrices or (dim is None and x.ndim != 1)):
        raise TypeError(
            f"numpy.linalg.norm: numgrad has norms of vectors (give one axis) and, of matrices, "
            f"Frobenius', not ord={p!r}"
        )
    return FUNCTIONS["norm"](x, 2 if p in (None, "fro") else p, dim, keepdim)


def _split(ary: Tensor, indices_or_sections: Any, dim: int = 0) -> Any:
    if isinstance(indices_or_sections, int) and ary.shape[dim] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return FUNCTIONS["tensor_split"](ary, indices_or_sections, dim=dim)


def _take(a: Tensor, indices: Any, axis: int | None = None) -> Tensor:
    if axis is None:
        a, axis = a.reshape(-1), 0
    if not isinstance(indices, Tensor):
        return a.select(axis, indices)
    taken = FUNCTIONS["index_select"](a, axis, indices.reshape(-1))
    axis %= a.ndim
    return taken.reshape(*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])


def _trace(a: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    return a.diagonal(offset, dim1, dim2).sum(-1)


def _transpose(a: Tensor, axes: Any = None) -> Tensor:
    return a.permute(tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))


Target = str | Callable[..., Any]
_REDUCED = "*a axis:dim -out keepdims:keepdim -initial -where=True"
_SUMMED = "*a axis:dim dtype -out keepdims:keepdim -initial -where=True"
_MOMENT = "*a axis:dim -dtype -out ddof:correction=0 keepdims:keepdim -where=True -mean correction"
_MADE = "*a dtype -order=K -subok=True shape -device"

NAMES: dict[str, tuple[str, Target]] = {
    # reductions and scans
    "sum": (_SUMMED, "sum"),
    "prod": (_SUMMED, "prod"),
    "mean": ("*a axis:dim dtype -out keepdims:keepdim -where=True", "mean"),
    "nanmean": ("*a axis:dim dtype -out keepdims:keepdim -where=True", "nanmean"),
    "std": (_MOMENT, "std"),
    "var": (_MOMENT, "var"),
    "amax": (_REDUCED, "amax"),
    "amin": (_REDUCED, "amin"),
    "max": (_REDUCED, "amax"),
    "min": (_REDUCED, "amin"),
    "ptp": (
        "*a axis:dim -out keepdims:keepdim",
        lambda a, **options: a.amax(**options) - a.amin(**options),
    ),
    "argmax": ("*a axis:dim -out keepdims:keepdim", "argmax"),
    "argmin": ("*a axis:dim -out keepdims:keepdim", "argmin"),
    "any": ("*a axis:dim -out keepdims:keepdim -where=True", "any"),
    "all": ("*a axis:dim -out keepdims:keepdim -where=True", "all"),
    "count_nonzero": ("*a axis:dim -keepdims=False", "count_nonzero"),
    "cumsum": ("*a axis~dim=None dtype -out", "cumsum"),
    "cumprod": ("*a axis~dim=None dtype -out", "cumprod"),
    "linalg.norm": ("*x ord:p axis:dim keepdims:keepdim", _norm),
    "trace": ("*a offset axis1:dim1 axis2:dim2 -dtype -out", _trace),
    # products
    "dot": ("*a *b out", _dot),
    "vdot": ("*a *b", lambda a, b: FUNCTIONS["vdot"](a.reshape(-1), b.reshape(-1))),
    "inner": ("*a *b", "inner"),
    "outer": ("*a *b out", lambda a, b, **o: FUNCTIONS["outer"](a.reshape(-1), b.reshape(-1), **o)),
    "tensordot": ("*a *b axes:dims", "tensordot"),
    "kron": ("*a *b", "kron"),
    "einsum": (
        "subscripts ***operands -out -dtype -order=K -casting=safe -optimize=*",
        lambda *operands, subscripts: FUNCTIONS["einsum"](subscripts, *operands),
    ),
    # shapes
    "reshape": (
        "*a shape -order=C newshape:shape -copy",
        lambda a, shape: FUNCTIONS["reshape"](a, _lengths(shape)),
    ),
    "ravel": ("*a -order=C", "ravel"),
    "squeeze": ("*a axis:dim", "squeeze"),
    "expand_dims": ("*a axis", _expand_dims),
    "moveaxis": ("*a source destination", "movedim"),
    "swapaxes": ("*a axis1:axis0 axis2:axis1", "swapaxes"),
    "transpose": ("*a axes", _transpose),
    "matrix_transpose": ("*x", lambda x: x.mT),
    "broadcast_to": (
        "*array shape -subok=False",
        lambda array, shape: FUNCTIONS["broadcast_to"](array, _lengths(shape)),
    ),
    "broadcast_arrays": ("***args -subok=False", "broadcast_tensors"),
    "atleast_1d": ("***arys", "atleast_1d"),
    "atleast_2d": ("***arys", "atleast_2d"),
    "atleast_3d": ("***arys", "atleast_3d"),
    "tile": ("*A reps", lambda A, reps: A.tile(_lengths(reps))),
    "repeat": ("*a repeats axis:dim", "repeat_interleave"),
    "flip": ("*m axis", _flip),
    "fliplr": ("*m", "fliplr"),
    "flipud": ("*m", "flipud"),
    "rot90": ("*m k axes:dims", "rot90"),
    "roll": ("*a shift:shifts axis:dims", "roll"),
    "diagonal": ("*a offset axis1:dim1 axis2:dim2", "diagonal"),
    "diag": ("*v k:diagonal", "diag"),
    "diagflat": ("*v k:offset", "diagflat"),
    "tril": ("*m k:diagonal", "tril"),
    "triu": ("*m k:diagonal", "triu"),
    "concatenate": ("**arrays axis~dim=0 out -dtype -casting=same_kind", "cat"),
    "stack": ("**arrays axis:dim out -dtype -casting=same_kind", "stack"),
    "vstack": ("**tup -dtype -casting=same_kind", "vstack"),
    "hstack": ("**tup -dtype -casting=same_kind", "hstack"),
    "dstack": ("**tup", "dstack"),
    "column_stack": ("**tup", "column_stack"),
    "split": ("*ary indices_or_sections axis:dim", _split),
    "array_split": ("*ary indices_or_sections axis:dim", "tensor_split"),
    "hsplit": ("*ary indices_or_sections", "hsplit"),
    "vsplit": ("*ary indices_or_sections", "vsplit"),
    "dsplit": ("*ary indices_or_sections", "dsplit"),
    "unstack": ("*x axis:dim", "unbind"),
    "meshgrid": ("***xi -copy=True -sparse=False indexing=xy", "meshgrid"),
    # elements
    "where": ("*condition *x *y", lambda condition, *xy: FUNCTIONS["where"](condition, *xy)),
    "clip": ("*a a_min:min a_max:max out min max", "clamp"),
    "round": ("*a decimals out", "round"),
    "around": ("*a decimals out", "round"),
    "fix": ("*x out", "trunc"),
    "nan_to_num": ("*x -copy=True nan posinf neginf", "nan_to_num"),
    "sinc": ("*x", "sinc"),
    "real": ("*val", "real"),
    "imag": ("*val", "imag"),
    "angle": ("*z -deg=False", "angle"),
    "isposinf": ("*x out", "isposinf"),
    "isneginf": ("*x out", "isneginf"),
    "isreal": ("*x", "isreal"),
    "isclose": ("*a *b rtol atol equal_nan", _compared("isclose")),
    "allclose": ("*a *b rtol atol equal_nan", _compared("allclose")),
    "array_equal": ("*a1 *a2 -equal_nan=False", _array_equal),
    "take": ("*a *indices axis -out -mode=raise", _take),
    "take_along_axis": ("*arr *indices axis:dim", "take_along_dim"),
    "nonzero": ("*a", lambda a: a.nonzero(as_tuple=True)),
    "argwhere": ("*a", "argwhere"),
    "sort": ("*a axis~dim=-1 -kind -order -stable", lambda a, dim: a.sort(dim).values),
    "argsort": ("*a axis~dim=-1 -kind -order stable", "argsort"),
    # new tensors
    "copy": ("*a -order=K -subok=False", "clone"),
    "zeros_like": (_MADE, _like(0)),
    "ones_like": (_MADE, _like(1)),
    "empty_like": (_MADE.replace("*a", "*prototype"), _like(0)),
    "full_like": ("*a fill_value dtype -order=K -subok=True shape -device", _full_like),
}

# Functions that ask about memory, shape or dtype only. They get the arrays themselves.
FACTS = """
can_cast common_type iscomplexobj isrealobj may_share_memory min_scalar_type ndim result_type shape
shares_memory size
"""

# Functions that write arrays to a file, a text, or another array. They get what `numpy()` gives.
WRITERS = "array2string array_repr array_str copyto save savetxt savez savez_compressed"
