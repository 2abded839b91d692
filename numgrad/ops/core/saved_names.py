"""PyTorch's names of what nodes save: ``_saved_dim``, ``_saved_self_sym_sizes`` and the like.

A node holds the parameters of its rule. From them come attributes such as ``_saved_dim`` and
``_saved_self_sym_sizes``, when somebody asks: until then they cost nothing. Dims count from the
first and are all written out, also where PyTorch keeps them as they were given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.tensor import wrap

__all__ = ["fact_properties", "saved_name"]

Reader = Callable[[Any], Any]

# For each primitive PyTorch's names of what its node keeps: the name of a parameter where that is
# another one, or `<input>_sym_sizes`.
_SIZES = "self_sym_sizes"
_REDUCED = "dim=dims keepdim"
_AT = f"dim {_SIZES}"
_DIAGONAL = "offset dim1 dim2"
_PARAMETERS = {
    "select_backward": "dim index",
    "slice_backward": "dim start end=stop step",
    "diagonal_backward": _DIAGONAL,
    "index_backward": "indices",
    "select": f"dim index {_SIZES}",
    "slice": f"dim start end=stop step {_SIZES}",
    "sum": _SIZES,
    "sum_over_dims": f"{_REDUCED} {_SIZES}",
    "mean": _SIZES,
    "mean_over_dims": f"{_REDUCED} {_SIZES}",
    **dict.fromkeys(("amax", "amin", "nansum", "logsumexp"), _REDUCED),
    **dict.fromkeys(("prod_over_dim", "aminmax"), "keepdim"),
    **dict.fromkeys(("var", "std", "var_mean", "std_mean"), f"{_REDUCED} correction"),
    **dict.fromkeys(("max_along_dim", "min_along_dim", "kthvalue"), f"{_AT} keepdim"),
    **dict.fromkeys(("cdist", "pdist", "dist"), "p"),
    "renorm": "dim maxnorm p",
    **dict.fromkeys(("median_along", "nanmedian_along", "mode"), f"{_AT} keepdim"),
    **dict.fromkeys(("sort", "sort_stable", "topk"), _AT),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), "dim"),
    **dict.fromkeys(("softmax", "log_softmax", "cat", "stack", "unbind"), "dim"),
    **dict.fromkeys(("softmax_backward", "log_softmax_backward"), "dim"),
    "vector_norm": f"{_REDUCED} ord=p",
    "mm": f"{_SIZES} mat2_sym_sizes",
    "addmm": "alpha beta mat1_sym_sizes mat2_sym_sizes",
    **dict.fromkeys(("addmv", "addr", "baddbmm", "addbmm"), "alpha beta"),
    **dict.fromkeys(
        ("view", "alias_in_shape", "unsafe_view", "squeeze_all", "expand", "trace"), _SIZES
    ),
    **dict.fromkeys(("squeeze_dim", "squeeze_dims", "drop_first_dim"), _SIZES),
    "unsqueeze": "dim",
    "permute": "dims",
    "transpose": "dim0 dim1",
    **dict.fromkeys(("diagonal", "diagonal_copy"), f"{_DIAGONAL} {_SIZES}"),
    **dict.fromkeys(("diag_embed", "diagonal_scatter"), _DIAGONAL),
    **dict.fromkeys(("tril", "triu"), "diagonal"),
    "flip": "dims",
    "roll": "shifts dims",
    "rot90": "k dims",
    "repeat": f"repeats {_SIZES}",
    "unfold": f"dimension=dim size step {_SIZES}",
    "split": _AT,
    "split_with_sizes": f"{_AT} split_sizes=sizes",
    "index": f"indices {_SIZES}",
    "gather": "dim index",
    "take_along": "dim",
    **dict.fromkeys(("scatter", "scatter_number", "scatter_add"), "dim index"),
    "take": "index",
    "index_select": f"{_AT} index",
    **dict.fromkeys(("index_add", "index_copy"), "dim index"),
    **dict.fromkeys(("scatter_reduce", "index_reduce"), "dim index reduce include_self"),
    **dict.fromkeys(("index_fill_number", "index_fill_tensor"), "dim index"),
    **dict.fromkeys(("index_put", "index_put_accumulate"), "indices"),
    **dict.fromkeys(("masked_fill_number", "masked_fill_tensor", "masked_select"), "mask"),
    "masked_scatter": "mask source_sym_sizes",
    "select_scatter": "dim index",
    "slice_scatter": "dim start end=stop step",
    "fft_c2c": "dim=dims forward normalization",
    "fft_r2c": "dim=dims normalization onesided",
    "fft_c2r": "dim=dims normalization",
    **dict.fromkeys(
        ("linalg_cholesky_ex", "cholesky", "cholesky_inverse", "cholesky_solve"), "upper"
    ),
    "triangular_solve": "transpose unitriangular upper",
    "linalg_solve_triangular": "left unitriangular upper",
    "linalg_solve_ex": "left",
    "linalg_svd": "full_matrices",
    "linalg_qr": "mode",
    **dict.fromkeys(("linalg_lu", "linalg_lu_factor_ex"), "pivot"),
    "linalg_lu_solve": "adjoint left",
    "ormqr": "left transpose",
    "linalg_cross": "dim",
}


def _layout(parameter: str) -> dict[str, Reader]:
    """Return how a node with a layout (size, stride, offset) tells of it.

    The offset is told as the user said it, if anybody did.
    """

    def part(at: int) -> Reader:
        return lambda node: node.parameters[parameter][at]

    def offset(node: Any) -> Any:
        return node.parameters.get("storage_offset", node.parameters[parameter][2])

    return {"size": part(0), "stride": part(1), "storage_offset": offset}


def _size_of(input: int, dim: int) -> Reader:
    return lambda node: node.shapes[input][0][dim]


def _only_dim(node: Any) -> int | None:
    """Return the reduced dim, or None if all were reduced."""
    dims = node.parameters["dims"]
    only: int | None = dims[0] if len(dims) == 1 else None
    return only


def _summed_dims(node: Any) -> tuple[int, ...]:
    """Return the dims over which a gradient was summed to a size."""
    source, target = node.shapes[0][0], node.parameters["shape"]
    extra = len(source) - len(target)
    kept = zip(source[extra:], target, strict=True)
    return (*range(extra), *[extra + k for k, (a, b) in enumerate(kept) if a != b])


def _widths(node: Any) -> tuple[int, ...]:
    """Return how wide a pad is, from the last dim on to the first one that is padded."""
    widths = list(node.parameters["widths"])
    while widths and widths[0] == (0, 0):
        widths.pop(0)
    return tuple([width for pair in reversed(widths) for width in pair])


# What is found otherwise.
_FOUND: dict[str, dict[str, Reader]] = {
    **{
        key: {"self_sym_numel": lambda node: math.prod(node.shapes[0][0])}
        for key in ("mean", "mean_over_dims")
    },
    "prod_over_dim": {"dim": _only_dim},
    "aminmax": {"dim": _only_dim},
    "spread": {
        "self_sym_sizes": lambda node: tuple(
            1 if dim in node.parameters["dims"] else length
            for dim, length in enumerate(node.parameters["shape"])
        )
    },
    "sum_to_size": {
        "dim": _summed_dims,
        "keepdim": lambda node: True,
        "self_sym_sizes": lambda node: node.shapes[0][0],
    },
    "constant_pad_nd": {"pad": _widths},
    "squeeze_dim": {"dim": lambda node: node.parameters["dims"][0]},
    "squeeze_dims": {"dim": lambda node: node.parameters["dims"]},
    "split": {"split_size": lambda node: node.parameters["sizes"][0]},
    "as_strided": _layout("layout"),
    "as_strided_scatter": _layout("inner"),
    "addbmm": {
        "batch1_sym_argsize_0": _size_of(1, 0),
        "batch1_sym_argsize_1": _size_of(1, 1),
        "batch2_sym_argsize_2": _size_of(2, 2),
    },
    **{
        key: {"source_dim": lambda node: len(node.shapes[1][0])}
        for key in ("index_add", "index_copy")
    },
}
# The same in every call.
_CONSTANTS: dict[str, dict[str, Any]] = {
    **{key: {"alpha": 1} for key in ("add", "sub", "rsub", "rsub_tensor")},
    "floor_divide": {"rounding_mode": "floor"},
    "trunc_divide": {"rounding_mode": "trunc"},
    "logit": {"eps": None},
    **{key: {"max": None} for key in ("clamp_min_number", "clamp_min_tensor")},
    **{key: {"min": None} for key in ("clamp_max_number", "clamp_max_tensor")},
    **{key: {"sparse_grad": False} for key in ("gather", "take_along")},
    "index_put": {"accumulate": False},
    "index_backward": {"accumulate": True},
    "index_put_accumulate": {"accumulate": True},
    "threshold_backward": {"threshold": 0},
    "drop_first_dim": {"dim": 0},
    "gelu": {"approximate": "none"},
    "gelu_tanh": {"approximate": "tanh"},
}
# Operands and results that go by another name here.
_RENAMED: dict[str, dict[str, str]] = {
    "pow_of_number": {"base": "self"},
    "std_mean": {"deviation": "result0"},
    "threshold_backward": {"other": "self"},
    **{key: {"cotangent": "grad_output"} for key in ("softmax_backward", "log_softmax_backward")},
    "take_along": {"indices": "index"},
    "linalg_lstsq": {"A": "self", "B": "b"},
    "linalg_householder_product": {"input": "input"},
    "ormqr": {"input": "self", "tau": "input2", "other": "input3"},
    "cholesky_solve": {"L": "input2"},
    "triangular_solve": {"B": "self"},
    "linalg_solve_triangular": {"A": "self"},
}
_EVERYWHERE = {"input": "self", "y": "result"}


def saved_name(name: str, primitive: str = "") -> str:
    """Return what PyTorch calls an operand or a result among the things that a node saved."""
    renamed = _RENAMED.get(primitive)
    if renamed is not None and name in renamed:
        return renamed[name]
    return _EVERYWHERE.get(name, name)


def fact_properties(primitive: str) -> dict[str, property]:
    """Return the properties of a class of nodes that tell of a call, by the primitive's name."""
    readers: dict[str, Reader] = {}
    for entry in _PARAMETERS.get(primitive, "").split():
        name, _, parameter = entry.partition("=")
        readers[name] = _reader(name, parameter or name)
    readers |= _FOUND.get(primitive, {})
    for name, value in _CONSTANTS.get(primitive, {}).items():
        readers[name] = _constant(value)
    return {f"_saved_{name}": property(read) for name, read in readers.items()}


def _constant(value: Any) -> Reader:
    return lambda node: value


def _reader(name: str, parameter: str) -> Reader:
    if name.endswith("_sym_sizes"):
        return lambda node: _shape_of(node, name.removesuffix("_sym_sizes"))
    return lambda node: _presented(node.parameters[parameter])


def _shape_of(node: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an input that has this name in PyTorch."""
    names = [saved_name(own) for own in node.primitive.input_names(len(node.targets))]
    shape: tuple[int, ...] = node.shapes[names.index(name)][0]
    return shape


def _presented(value: Any) -> Any:
    """Return a parameter as users see it: arrays as tensors."""
    if isinstance(value, np.ndarray):
        return wrap(value)
    if isinstance(value, (tuple, list)):
        return tuple([_presented(each) for each in value])
    return value
