"""Choosing elementwise: where, maximum, minimum, clamp."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import refuse_shape_of
from numgrad.graph.tensor import Tensor, fresh, view_of, wrap
from numgrad.graph.warned import warn
from numgrad.ops.arguments.scalar_arrays import IN_EVERY_DTYPE, scalar_array
from numgrad.ops.calls.keys import IN_EVERY_FLOAT
from numgrad.ops.core.declare import binary, elementwise
from numgrad.ops.core.domains import MASK, REAL, apart, interval, number
from numgrad.ops.core.out_argument import SAME_DTYPE, refuse_gradients
from numgrad.ops.core.promotion import result_dtype
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

__all__ = ["clamp", "maximum", "minimum", "nonzero_by_dim", "where"]

Array = np.ndarray[Any, Any]


_where = elementwise(
    "where",
    ("condition", "input", "other"),
    (
        None,
        lambda g, condition: where(condition, g, 0),
        lambda g, condition: where(condition, 0, g),
    ),
    (MASK, REAL, REAL),
    node="WhereBackward0",
    masks=("condition",),
    accepts="fciub",
    doc="Return elements of `input` where `condition` holds, of `other` elsewhere.",
)


@declare(
    "where(mask condition)",
    "where(mask condition, Tensor input, Tensor other, *, Tensor? out=None)",
    "where(mask condition, number input, Tensor other)",
    "where(mask condition, Tensor input, number other)",
    "where(mask condition, number input, number other)",
    method=False,
)
def where(condition: Any, input: Any, other: Any, out: Tensor | None) -> Any:
    """Return elements of `input` where `condition` holds, and of `other` elsewhere.

    With the condition alone, return the indices of its True elements, one tensor a dimension.
    The gradient flows to the operand that was chosen and is 0 for the other.

    Parameters
    ----------
    condition : bool tensor
    input, other : tensor or number
        They broadcast with the condition and with each other.

    Raises
    ------
    RuntimeError
        If the condition is not a bool tensor.

    Notes
    -----
    In rules the condition may be a Python bool; then the operand it chooses is returned.

    >>> import numgrad as ng
    >>> x = ng.tensor([-1.0, 2.0])
    >>> ng.where(x > 0, x, 0.0)
    tensor([0., 2.])
    """
    if isinstance(condition, (bool, np.bool_)):
        return _chosen(input, other) if condition else _chosen(other, input)
    if isinstance(condition, Tensor):
        if input is None and other is None:
            refuse_shape_of("nonzero", condition._array)
            return nonzero_by_dim(condition._array)
        if condition._array.dtype.kind != "b":
            if condition._array.dtype != "uint8":
                raise RuntimeError(
                    "where expected condition to be a boolean tensor, but got a tensor with dtype "
                    f"{condition.dtype.scalar_name}"
                )
            warn(
                "where received a uint8 condition tensor. This behavior is deprecated and will be "
                "removed in a future version of PyTorch. Use a boolean condition instead."
            )
            condition = condition != 0
        if out is not None:
            tensors = [each for each in (input, other) if isinstance(each, Tensor)]
            refuse_gradients("where", modes.grad and any(each.requires_grad for each in tensors))
            wanted = result_dtype([input, other])
            if out.dtype is not wanted:
                raise RuntimeError(
                    f"Expected out type to be {wanted.scalar_name} but got {out.dtype.scalar_name}"
                )
        for value in (input, other):
            is_small = (type(value) is int and 0 <= value < IN_EVERY_DTYPE) or (
                type(value) is float and -IN_EVERY_FLOAT < value < IN_EVERY_FLOAT
            )
            if type(value) in (int, float) and not is_small:  # it has to fit, or it raises
                dtype = result_dtype([input, other]).numpy
                scalar_array(value, dtype, checks_half=False)
        return _where.call((condition, input, other), out)
    return _where(condition, input, other, out=out)


def nonzero_by_dim(array: Array) -> tuple[Tensor, ...]:
    """Return where an array is not 0: for each dim the positions, views of what has them all."""
    found = wrap(np.argwhere(array.reshape(array.shape or (1,))).astype(np.int64, copy=False))
    return tuple(view_of(found, found._array[:, dim]) for dim in range(found._array.shape[1]))


def _chosen(chosen: Any, left: Any) -> Any:
    """Return the operand chosen for all elements, as a tensor if the other one is."""
    if isinstance(chosen, Tensor) or not isinstance(left, Tensor):
        return chosen
    return fresh(np.full(left._array.shape, chosen, left._array.dtype))


@declare(
    "where(Tensor input, mask condition, Tensor other)",
    "where(Tensor input, mask condition, number other)",
    function=False,
)
def where_method(input: Tensor, condition: Tensor, other: Any) -> Any:
    """Return the tensor where `condition` holds, `other` elsewhere; see `numgrad.where`.

    >>> import numgrad as ng
    >>> ng.tensor([-1.0, 2.0]).where(ng.tensor([False, True]), 0.0)
    tensor([0., 2.])
    """
    return where(condition, input, other)


# maximum and minimum give nan if either operand is nan; fmax and fmin then give the other.
_EXTREMA = {
    name: publish(
        binary(
            name,
            rules,
            apart(REAL),
            formula=formula,
            accepts="fiub",
            # PyTorch fills g, copied row by row, where the other operand was chosen.
            gradients_lie=dict.fromkeys(("input", "other") if formula else (), lambda g: 0),
            refuses={"c": RuntimeError(f"{name} not implemented for complex tensors.")},
            doc=f"Return the {word} of two elements, {of_nan}.\n\nDerivative: {derivative}",
            example=example,
        ),
        inplace=False,
    )
    for name, word, of_nan, rules, formula, derivative, example in (
        (
            "maximum",
            "larger",
            "nan if either is nan",
            (
                lambda g, input, other: where(input == other, g / 2, where(input < other, 0, g)),
                lambda g, input, other: where(input == other, g / 2, where(input > other, 0, g)),
            ),
            None,
            "1 for the larger operand, 0 for the other, 1/2 for both at ties.",
            "ng.maximum(ng.tensor([1.0, 5.0]), ng.tensor([2.0, 3.0]))\ntensor([2., 5.])",
        ),
        (
            "minimum",
            "smaller",
            "nan if either is nan",
            (
                lambda g, input, other: where(input == other, g / 2, where(input > other, 0, g)),
                lambda g, input, other: where(input == other, g / 2, where(input < other, 0, g)),
            ),
            None,
            "1 for the smaller operand, 0 for the other, 1/2 for both at ties.",
            "ng.minimum(ng.tensor([1.0, 5.0]), ng.tensor([2.0, 3.0]))\ntensor([1., 3.])",
        ),
        (
            "fmax",
            "larger",
            "the other if one is nan",
            (
                lambda g, input, other: where((input >= other) | (other != other), g, 0),
                lambda g, input, other: where((input >= other) | (other != other), 0, g),
            ),
            lambda input, other: where((input >= other) | (other != other), input, other),
            "1 for the operand that is returned, `input` at ties, 0 for the other.",
            "ng.fmax(ng.tensor([1.0, ng.nan]), ng.tensor([2.0, 3.0]))\ntensor([2., 3.])",
        ),
        (
            "fmin",
            "smaller",
            "the other if one is nan",
            (
                lambda g, input, other: where((input <= other) | (other != other), g, 0),
                lambda g, input, other: where((input <= other) | (other != other), 0, g),
            ),
            lambda input, other: where((input <= other) | (other != other), input, other),
            "1 for the operand that is returned, `input` at ties, 0 for the other.",
            "ng.fmin(ng.tensor([1.0, ng.nan]), ng.tensor([2.0, 3.0]))\ntensor([1., 3.])",
        ),
    )
}
maximum, minimum = _EXTREMA["maximum"], _EXTREMA["minimum"]

# An element equal to a bound still gets the gradient, as in PyTorch. Where both bounds are given
# and min > max, every element is max.
_BOTH = (
    lambda g, input, min, max: where((input >= min) & (input <= max), g, 0),
    lambda g, input, min, max: where((min < max) & (input < min), g, 0),
    lambda g, input, min, max: where((input > max) | (max < min), g, 0),
)
_NOT_COMPLEX = {"c": NotImplementedError("clamp is not supported for complex types")}
_clamp_tensors = elementwise(
    "clamp",
    ("input", "min", "max"),
    _BOTH,
    (REAL, interval(-2.0, -1.0), interval(0.5, 1.5)),
    gradients_lie={"min": lambda g, input, min, max: where((input < min) & (min < max), g, 0)},
    formula=lambda input, min, max: minimum(maximum(input, min), max),
    accepts="fiu",
    node="ClampBackward0",
    refuses=_NOT_COMPLEX,
    doc="Return elements limited to a range given by tensors.",
)
_clamp_numbers = elementwise(
    "clamp_numbers",
    ("input", "min", "max"),
    (_BOTH[0], None, None),
    (REAL, number(-1.1), number(0.7)),
    formula=lambda input, min, max: minimum(maximum(input, min), max),
    accepts="fiu",
    node="ClampBackward1",
    numbers=("min", "max"),
    function_name="clamp",
    kernel_name="clamp_scalar_cpu",
    out_differs=SAME_DTYPE,
    refuses=_NOT_COMPLEX,
    doc="Return elements limited to a range given by numbers.",
)
# One bound, by (side, whether the bound is a number, whether `clamp` was called rather than
# `clamp_min` or `clamp_max`).
_ONE_SIDED = {
    (side, by_number, generic): elementwise(
        f"{'clamp' if generic else f'clamp{side}'}_{side}_{'number' if by_number else 'tensor'}",
        ("input", side),
        (inside, None if by_number else outside),
        (REAL, number(0.3)) if by_number else apart(REAL),
        formula=limit,
        accepts="fiu" if by_number else "fiub",
        node=("Clamp" if generic else f"Clamp{side.title()}")
        + f"Backward{int(by_number is generic)}",
        numbers=(side,) if by_number else (),
        function_name="clamp" if generic else f"clamp_{side}",
        out_differs=SAME_DTYPE if by_number else "",
        kernel_name=f"clamp_{side}_scalar_cpu" if by_number else f"{limit.__name__}_cpu",
        refuses=_NOT_COMPLEX if by_number or generic else None,
        doc=f"Return elements limited by a {side}imum.",
    )
    for side, limit, inside, outside in (
        (
            "min",
            maximum,
            lambda g, input, min: where(input >= min, g, 0),
            lambda g, input, min: where(input < min, g, 0),
        ),
        (
            "max",
            minimum,
            lambda g, input, max: where(input <= max, g, 0),
            lambda g, input, max: where(input > max, g, 0),
        ),
    )
    for by_number in (False, True)
    for generic in (False, True)
}


@declare(
    "clamp(Tensor input, Tensor? min=None, Tensor? max=None, *, Tensor? out=None)",
    "clamp(Tensor input, number? min=None, number? max=None, *, Tensor? out=None)",
    inplace=True,
    aliases=("clip",),
    dispatched=True,
    factors=("min", "max"),
)
def clamp(input: Tensor, min: Any, max: Any, out: Tensor | None) -> Tensor:
    """Return elements limited to the range from `min` to `max`; nan stays nan.

    Derivative: 1 inside the range and at its bounds, 0 outside.

    Parameters
    ----------
    min, max : tensor or number, optional
        The bounds; tensors broadcast. Where ``min > max`` the result is `max`.

    Raises
    ------
    RuntimeError
        If neither bound is given.

    >>> import numgrad as ng
    >>> ng.tensor([-2.0, 0.5, 3.0]).clamp(-1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    _check_bounds(input, min, max)
    if min is not None and max is not None:
        if isinstance(min, Tensor) or isinstance(max, Tensor):
            result: Tensor = _clamp_tensors(input, min, max, out=out)
        else:
            result = _clamp_numbers(input, min, max, out=out)
        return result
    side, bound = ("min", min) if max is None else ("max", max)
    return _clamp_one_side(side, True, input, bound, out)


def _check_bounds(input: Any, *bounds: Any) -> None:
    """Raise if a number among the bounds is none of the result's dtype."""
    for bound in bounds:
        if isinstance(bound, (int, float)) and isinstance(input, Tensor):
            if input._array.dtype.kind == "f" and -IN_EVERY_FLOAT < bound < IN_EVERY_FLOAT:
                continue
            dtype = result_dtype([input, *[each for each in bounds if each is not None]])
            scalar_array(bound, dtype.numpy)


_BOUNDS = ("Tensor", "number")


def _clamp_one_side(
    side: str, generic: bool, input: Tensor, bound: Any, out: Tensor | None
) -> Tensor:
    if not generic:
        _check_bounds(input, bound)
    primitive = _ONE_SIDED[side, not isinstance(bound, Tensor), generic]
    result: Tensor = primitive(input, bound, out=out)
    return result


@declare(
    *[f"clamp_min(Tensor input, {kind} min, *, Tensor? out=None)" for kind in _BOUNDS],
    inplace=True,
    dispatched=True,
    factors=("min",),
)
def clamp_min(input: Tensor, min: Any, out: Tensor | None) -> Tensor:
    """Return elements not below `min`; see `clamp`.

    Derivative: 1 at and above `min`, 0 below; the other way round for `min`.

    >>> import numgrad as ng
    >>> ng.clamp_min(ng.tensor([-2.0, 3.0]), 0)
    tensor([0., 3.])
    """
    return _clamp_one_side("min", False, input, min, out)


@declare(
    *[f"clamp_max(Tensor input, {kind} max, *, Tensor? out=None)" for kind in _BOUNDS],
    inplace=True,
    dispatched=True,
    factors=("max",),
)
def clamp_max(input: Tensor, max: Any, out: Tensor | None) -> Tensor:
    """Return elements not above `max`; see `clamp`.

    Derivative: 1 at and below `max`, 0 above; the other way round for `max`.

    >>> import numgrad as ng
    >>> ng.clamp_max(ng.tensor([-2.0, 3.0]), 0)
    tensor([-2.,  0.])
    """
    return _clamp_one_side("max", False, input, max, out)
