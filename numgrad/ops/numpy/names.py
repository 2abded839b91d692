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

from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.core.ufunc_names import UFUNCS
from numgrad.ops.numpy import functions as own
from numgrad.ops.numpy.reductions import REDUCED

__all__ = ["FACTS", "NAMES", "OF_TENSORS", "REDUCTIONS", "UFUNCS", "WRITERS", "Target"]

# Of these ours takes tensors of one dtype only, and no numbers.
OF_TENSORS = ("heaviside", "matmul")

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


Target = str | Callable[..., Any]
_REDUCED = "*a axis out keepdims initial where"
_SUMMED = "*a axis dtype out keepdims initial where"
_MEAN = "*a axis dtype out keepdims where"
_MOMENT = "*a axis dtype out ddof keepdims where -mean correction"
_MADE = "*a dtype -order=K -subok=True shape -device"

NAMES: dict[str, tuple[str, Target]] = {
    # reductions and scans
    "sum": (_SUMMED, REDUCED["sum"]),
    "prod": (_SUMMED, REDUCED["prod"]),
    "mean": (_MEAN, REDUCED["mean"]),
    "nanmean": (_MEAN, REDUCED["nanmean"]),
    "std": (_MOMENT, REDUCED["std"]),
    "var": (_MOMENT, REDUCED["var"]),
    "amax": (_REDUCED, REDUCED["amax"]),
    "amin": (_REDUCED, REDUCED["amin"]),
    "max": (_REDUCED, REDUCED["amax"]),
    "min": (_REDUCED, REDUCED["amin"]),
    "ptp": ("*a axis out keepdims", REDUCED["ptp"]),
    "argmax": ("*a axis out keepdims", REDUCED["argmax"]),
    "argmin": ("*a axis out keepdims", REDUCED["argmin"]),
    "any": ("*a axis out keepdims where", REDUCED["any"]),
    "all": ("*a axis out keepdims where", REDUCED["all"]),
    "count_nonzero": ("*a axis keepdims", REDUCED["count_nonzero"]),
    "cumsum": ("*a axis dtype out", REDUCED["cumsum"]),
    "cumprod": ("*a axis dtype out", REDUCED["cumprod"]),
    "linalg.norm": ("*x ord axis keepdims", own.norm),
    "trace": ("*a offset axis1:dim1 axis2:dim2 dtype out", own.trace),
    # products
    "dot": ("*a *b out", own.dot),
    "vdot": ("*a *b", own.vdot),
    "inner": ("*a *b", own.inner),
    "outer": ("*a *b out", own.outer),
    "tensordot": ("*a *b axes:dims", own.product("tensordot")),
    "kron": ("*a *b", own.product("kron")),
    "einsum": (
        "subscripts ***operands -out -dtype -order=K -casting=safe -optimize=*",
        lambda *operands, subscripts: FUNCTIONS["einsum"](subscripts, *operands),
    ),
    # shapes
    "reshape": (
        "*a shape -order=C newshape:shape -copy",
        lambda a, shape: FUNCTIONS["reshape"](a, own.lengths(shape)),
    ),
    "ravel": ("*a -order=C", "ravel"),
    "squeeze": ("*a axis", own.squeeze),
    "expand_dims": ("*a axis", own.expand_dims),
    "moveaxis": ("*a source destination", "movedim"),
    "swapaxes": ("*a axis1:axis0 axis2:axis1", "swapaxes"),
    "transpose": ("*a axes", own.transpose),
    "matrix_transpose": ("*x", lambda x: x.mT),
    "broadcast_to": (
        "*array shape -subok=False",
        lambda array, shape: FUNCTIONS["broadcast_to"](array, own.lengths(shape)),
    ),
    "broadcast_arrays": ("***args -subok=False", "broadcast_tensors"),
    "atleast_1d": ("***arys", "atleast_1d"),
    "atleast_2d": ("***arys", "atleast_2d"),
    "atleast_3d": ("***arys", "atleast_3d"),
    "tile": ("*A reps", lambda A, reps: A.tile(own.lengths(reps))),
    "repeat": ("*a repeats axis", own.repeat),
    "flip": ("*m axis", own.flip),
    "fliplr": ("*m", "fliplr"),
    "flipud": ("*m", "flipud"),
    "rot90": ("*m k axes:dims", "rot90"),
    "roll": ("*a shift axis", own.roll),
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
    "split": ("*ary indices_or_sections axis:dim", own.split),
    "array_split": ("*ary indices_or_sections axis:dim", own.parts("tensor_split")),
    "hsplit": ("*ary indices_or_sections", own.parts("hsplit")),
    "vsplit": ("*ary indices_or_sections", own.parts("vsplit")),
    "dsplit": ("*ary indices_or_sections", own.parts("dsplit")),
    "unstack": ("*x axis:dim", "unbind"),
    "meshgrid": ("***xi -copy=True -sparse=False indexing=xy", "meshgrid"),
    # elements
    "where": ("*condition *x *y", own.where),
    "clip": ("*a a_min:min a_max:max out min max", own.clip),
    "round": ("*a decimals out", own.round_),
    "around": ("*a decimals out", own.round_),
    "fix": ("*x out", "trunc"),
    "nan_to_num": ("*x -copy=True nan posinf neginf", "nan_to_num"),
    "sinc": ("*x", "sinc"),
    "real": ("*val", "real"),
    "imag": ("*val", own.imag),
    "angle": ("*z deg", own.angle),
    "isposinf": ("*x out", "isposinf"),
    "isneginf": ("*x out", "isneginf"),
    "isreal": ("*x", "isreal"),
    "isclose": ("*a *b rtol atol equal_nan", own.compared("isclose")),
    "allclose": ("*a *b rtol atol equal_nan", own.compared("allclose")),
    "array_equal": ("*a1 *a2 equal_nan", own.array_equal),
    "take": ("*a *indices axis out mode", own.take),
    "take_along_axis": ("*arr *indices axis:dim=-1", "take_along_dim"),
    "nonzero": ("*a", lambda a: a.nonzero(as_tuple=True)),
    "argwhere": ("*a", "argwhere"),
    "sort": ("*a axis~dim=-1 kind -order stable", own.sort),
    "argsort": ("*a axis~dim=-1 kind -order stable", own.argsort),
    # new tensors
    "copy": ("*a -order=K -subok=False", "clone"),
    "zeros_like": (_MADE, own.like(0)),
    "ones_like": (_MADE, own.like(1)),
    "empty_like": (_MADE.replace("*a", "*prototype"), own.like(0)),
    "full_like": ("*a fill_value dtype -order=K -subok=True shape -device", own.full_like),
}

# Functions that ask about memory, shape or dtype only. They get the arrays themselves.
FACTS = """
can_cast common_type iscomplexobj isrealobj may_share_memory min_scalar_type ndim result_type shape
shares_memory size
"""

# Functions that write arrays to a file, a text, or another array. They get what `numpy()` gives.
WRITERS = "array2string array_repr array_str copyto save savetxt savez savez_compressed"
