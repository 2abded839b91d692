"""Batching rules: what to apply outside so that it is a primitive for every example.

Most follow from the declaration: with the examples along a first dim of every operand, dims move
on by one and shapes get one more length (`derived`). Elementwise primitives need no rule, as the
dim is one more to broadcast, nor do views, which are found by where they lie. The others have
theirs in `numgrad.batching.indexing`, `numgrad.batching.products` and here, or are
taken apart inside (`numgrad.batching.taken_apart`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from numgrad.batching.convolutions import CONVOLUTIONS
from numgrad.batching.indexing import INDEXING
from numgrad.batching.memory import Part
from numgrad.batching.products import PRODUCTS
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.strides import Layout, extent
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.movement.joining import stack
from numgrad.ops.movement.shape import reshape

__all__ = ["LOOPED", "RULES", "batched_result", "has_batched", "is_derived"]

Parameters = dict[str, Any]
# Parameters by what the examples' dim, which stands first, does to them.
_MOVE_ON = frozenset(("dim", "dim0", "dim1", "dim2"))
_ALL_MOVE_ON = frozenset(("dims",))
_LENGTHEN = frozenset(("shape",))
_NOT_PADDED = frozenset(("widths",))
_STAY = frozenset(
    (
        *("keepdim", "dtype", "reverse", "descending", "k", "largest", "p", "correction", "named"),
        *("start", "stop", "step", "offset", "diagonal", "sizes", "by", "fill", "index", "value"),
        *("normalization", "forward", "onesided", "last_size"),  # of Fourier transforms
        *("order", "subok", "device"),  # of NumPy's own functions
        *("right", "int32"),  # of searches
        # Of what slides over the last dims.
        *(
            "counts",
            "windows",
            "padded",
            "tables",
            "factor",
            "kernel",
            "stride",
            "padding",
            "dilation",
        ),
        *(
            "upper",
            "left",
            "unitriangular",
            "adjoint",
            "vector",
            "checked",
            "transpose",
            "vectors",
            "full_matrices",
            "mode",
            "words",
            "hermitian",
            "pivot",
            "backwards",
            "unpack_data",
            "unpack_pivots",
            "is_real",
            "driver",
            "rcond",
        ),  # of matrices
    )
)
# What has no better way than one example after the other.
LOOPED = frozenset(
    (
        *("masked_scatter", "masked_scatter_backward", "linalg_lstsq", "median", "nanmedian"),
        *("pdist", "dist", "renorm", "ctc_loss"),
    )
)


def batched_result(
    primitive: Primitive, size: int, parts: Sequence[Part], parameters: Parameters
) -> tuple[Any, bool]:
    """Apply a primitive outside, to so many examples.

    Parameters
    ----------
    primitive : Primitive
    size : int
        The number of examples.
    parts : sequence of Part
        The operands.
    parameters : dict
        With parts in the place of arrays from inside.

    Returns
    -------
    result : Tensor or sequence of Tensor
    batched : bool
        Whether the examples lie along its first dim; else the result is one for all.
    """
    of_parameters = has_batched(tuple(parameters.values()))
    if not of_parameters and not has_batched(parts):
        return _apply(primitive, [part.tensor for part in parts], parameters), False
    rule = RULES.get(primitive.name)
    if rule is not None:
        return rule(size, *parts, **parameters), True
    if primitive.name in LOOPED or of_parameters or not is_derived(primitive):
        return _looped(primitive, size, parts, parameters), True
    return derived(primitive, size, parts, parameters), True


@functools.cache
def is_derived(primitive: Primitive) -> bool:
    """Return whether the rule of a primitive follows from the names of its parameters."""
    known = _MOVE_ON | _ALL_MOVE_ON | _LENGTHEN | _NOT_PADDED | _STAY
    return known.issuperset(_parameters_of(primitive))


def _parameters_of(primitive: Primitive) -> list[str]:
    found = [
        name
        for name, each in inspect.signature(primitive.forward).parameters.items()
        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    return found if primitive.variadic else found[len(primitive.inputs) :]


def derived(primitive: Primitive, size: int, parts: Sequence[Part], parameters: Parameters) -> Any:
    """Apply a primitive to operands with a dim more, with its parameters moved on."""
    scalars = not any(part.ndim for part in parts) and not parameters.get("shape")
    operands = [part.every(size) for part in parts]
    if scalars:  # a dim of what has none
        operands = [reshape(operand, (size, 1)) for operand in operands]
        if "keepdim" in parameters:
            parameters = {**parameters, "keepdim": True}
    moved = {
        name: _moved(name, value, size, scalars and name in _ALL_MOVE_ON)
        for name, value in parameters.items()
    }
    result = _apply(primitive, operands, moved)
    if not scalars or not (_MOVE_ON | _ALL_MOVE_ON).intersection(parameters):
        if scalars:
            return _each(result, lambda one: reshape(one, (size, *one._array.shape[2:])))
        return result
    return _each(result, lambda one: reshape(one, (size,)))


def _each(result: Any, function: Callable[[Tensor], Tensor]) -> Any:
    return function(result) if isinstance(result, Tensor) else [function(one) for one in result]


def _moved(name: str, value: Any, size: int, of_scalar: bool) -> Any:
    if name in _MOVE_ON:
        return value + 1
    if name in _ALL_MOVE_ON:
        return (1,) if of_scalar else tuple([dim + 1 for dim in value])
    if name in _LENGTHEN:
        return (size, *value)
    if name in _NOT_PADDED:
        return ((0, 0), *value)
    return value


def _apply(primitive: Primitive, operands: Sequence[Tensor], parameters: Parameters) -> Any:
    return primitive.apply(*operands, **{n: _arrays(v) for n, v in parameters.items()})


def _arrays(value: Any) -> Any:
    """Return a parameter with arrays in the place of parts."""
    if type(value) is Part:
        return value.tensor._array
    if type(value) in (tuple, list):
        return type(value)([_arrays(each) for each in value])
    return value


def has_batched(value: Any) -> bool:
    """Whether a part, or one of several, has the examples along its first dim."""
    if type(value) is Part:
        return value.batched
    return isinstance(value, (tuple, list)) and any(map(has_batched, value))


def _looped(primitive: Primitive, size: int, parts: Sequence[Part], parameters: Parameters) -> Any:
    """Apply a primitive to one example after the other."""

    def of(number: int, value: Any) -> Any:
        if type(value) is Part:
            if not value.batched:
                return value
            return Part(CATALOGUE["select"].apply(value.tensor, dim=0, index=number), False)
        if type(value) in (tuple, list):
            return type(value)([of(number, each) for each in value])
        return value

    found = [
        _apply(
            primitive,
            [of(number, part).tensor for part in parts],
            {name: of(number, value) for name, value in parameters.items()},
        )
        for number in range(size)
    ]
    if isinstance(found[0], Tensor):
        return stack(found, 0)
    return [stack(list(column), 0) for column in zip(*found, strict=True)]


# --- rules that are written -----------------------------------------------------------------------


def _broadcasting(name: str) -> Callable[..., Tensor]:
    """Return the rule of what broadcasts its operands."""

    def rule(size: int, *parts: Part, **parameters: Any) -> Tensor:
        ndim = max(part.ndim for part in parts)
        operands = [part.aligned(ndim) for part in parts]
        if not parts[0].batched:  # it gives a result its shape, in a copy
            operands[0] = parts[0].every(size)
        result: Tensor = _apply(CATALOGUE[name], operands, parameters)
        return result

    return rule


def _fill(name: str) -> Callable[..., Tensor]:
    def rule(size: int, input: Part, value: Part) -> Tensor:
        result: Tensor = CATALOGUE[name].apply(
            input.every(size), value=value.aligned(input.ndim)._array
        )
        return result

    return rule


def _stack(size: int, *parts: Part, dim: int, dtype: Any) -> Tensor:
    operands = [part.every(size) for part in parts]
    result: Tensor = CATALOGUE["stack"].apply(*operands, dim=dim + 1, dtype=dtype)
    return result


def _masked_fill(size: int, input: Part, mask: Part, value: Any) -> Tensor:
    ndim = max(input.ndim, mask.ndim)
    result: Tensor = CATALOGUE["masked_fill_number"].apply(
        input.aligned(ndim), mask=mask.aligned(ndim)._array, value=_arrays(value)
    )
    return result


def _clone(size: int, input: Part, contiguous: Any) -> Tensor:
    if isinstance(contiguous, tuple):
        contiguous = (0, *[1 + dim for dim in contiguous])
    result: Tensor = CATALOGUE["clone"].apply(input.tensor, contiguous=contiguous)
    return result


def _cat(size: int, *parts: Part, dim: int, dtype: Any) -> Tensor:
    ndim = max(part.ndim for part in parts)  # what is empty and of one dim fits anywhere
    kept = [part.every(size) for part in parts if part.ndim == ndim]
    result: Tensor = CATALOGUE["cat"].apply(*kept, dim=dim + 1, dtype=dtype)
    return result


def _sum_to_size(size: int, input: Part, shape: tuple[int, ...]) -> Tensor:
    missing = input.ndim - len(shape)
    found = CATALOGUE["sum_to_size"].apply(
        input.aligned(len(shape)), shape=(size, *[1] * missing, *shape)
    )
    return reshape(found, (size, *shape)) if missing > 0 else found


def _repeat(size: int, input: Part, repeats: tuple[int, ...]) -> Tensor:
    result: Tensor = CATALOGUE["repeat"].apply(input.aligned(len(repeats)), repeats=(1, *repeats))
    return result


def _roll(size: int, input: Part, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Tensor:
    roll = CATALOGUE["roll"].apply
    if dims:
        dims = tuple([dim + 1 for dim in dims])
        result: Tensor = roll(input.tensor, shifts=shifts, dims=dims)
        return result
    flat = reshape(input.tensor, (size, -1))
    return reshape(roll(flat, shifts=shifts, dims=(1,)), (size, *input.shape))


def _with_examples(layouts: Sequence[Layout], size: int) -> list[Layout]:
    """Return layouts in the memory of so many examples, one behind the other."""
    found = [extent(layout) for layout in layouts]
    low, high = min(low for low, _ in found), max(high for _, high in found)
    step = max(high - low, 1)
    return [((size, *shape), (step, *steps), first) for shape, steps, first in layouts]


def _move(size: int, input: Part, source: Layout, target: Layout, shared: Layout) -> Tensor:
    source, target, shared = _with_examples((source, target, shared), size)
    result: Tensor = CATALOGUE["as_strided_backward"].apply(
        input.tensor, source=source, target=target, shared=shared
    )
    return result


def _as_strided_scatter(
    size: int,
    input: Part,
    src: Part,
    outer: Layout,
    inner: Layout,
    storage_offset: int | None = None,
) -> Tensor:
    outer, inner = _with_examples((outer, inner), size)
    result: Tensor = CATALOGUE["as_strided_scatter"].apply(
        input.every(size), src.every(size), outer=outer, inner=inner
    )
    return result


def _place_along(
    size: int, input: Part, indices: Part, dim: int, keepdim: bool, shape: tuple[int, ...]
) -> Tensor:
    if not shape:
        return input.every(size)
    result: Tensor = CATALOGUE["place_along"].apply(
        input.every(size), indices.every(size), dim=dim + 1, keepdim=keepdim, shape=(size, *shape)
    )
    return result


RULES: dict[str, Callable[..., Any]] = {
    **{name: _broadcasting(name) for name in ("complex", "polar", "copy")},
    **INDEXING,
    **PRODUCTS,
    **CONVOLUTIONS,
    "masked_fill_number": _masked_fill,
    **{name: _fill(name) for name in ("fill_number", "fill_number_in_place")},
    "clone": _clone,
    "stack": _stack,
    "cat": _cat,
    "sum_to_size": _sum_to_size,
    "repeat": _repeat,
    "roll": _roll,
    "as_strided_backward": _move,
    "as_strided_scatter": _as_strided_scatter,
    "place_along": _place_along,
}
