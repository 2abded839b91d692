"""Choosing elementwise: where, maximum, minimum, clamp; comparisons and logic."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.core import Tensor, wrap
from numgrad.kernels.expression import Symbol
from numgrad.ops.domains import MASK, REAL, apart, interval, number
from numgrad.ops.elementwise import binary, elementwise, unary
from numgrad.ops.functions import public, publish



def absolute_of(value: Any) -> Any:
    """Return the absolute value of a symbol; the catalogue's `abs` stands in a later family."""
    return Symbol.apply("abs", value)


__all__ = ["clamp", "maximum", "minimum", "where"]

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


@public(method=False)
def where(condition: Any, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
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
    if condition is True or condition is False:
        return input if condition else other
    if isinstance(condition, Tensor):
        if input is None and other is None:
            return tuple(wrap(indices) for indices in np.nonzero(condition._array))
        if condition._array.dtype.kind != "b":
            if condition._array.dtype != "uint8":
                raise RuntimeError(
                    "where expected condition to be a boolean tensor, but got a tensor with dtype "
                    f"{condition.dtype.scalar_name}"
                )
            condition = condition != 0
    return _where(condition, input, other, out=out)


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """Return `self` where `condition` holds, `other` elsewhere; see `numgrad.where`."""
    return where(condition, self, other)


public("where", function=False)(_where_method)

maximum = publish(
    binary(
        "maximum",
        (
            lambda g, input, other: where(input == other, g / 2, where(input < other, 0, g)),
            lambda g, input, other: where(input == other, g / 2, where(input > other, 0, g)),
        ),
        apart(REAL),
        accepts="fiub",
        doc="Return the larger of two elements, nan if either is nan.\n\n"
        "Derivative: 1 for the larger operand, 0 for the other, 1/2 for both at ties.",
    ),
    inplace=False,
)

minimum = publish(
    binary(
        "minimum",
        (
            lambda g, input, other: where(input == other, g / 2, where(input > other, 0, g)),
            lambda g, input, other: where(input == other, g / 2, where(input < other, 0, g)),
        ),
        apart(REAL),
        accepts="fiub",
        doc="Return the smaller of two elements, nan if either is nan.\n\n"
        "Derivative: 1 for the smaller operand, 0 for the other, 1/2 for both at ties.",
    ),
    inplace=False,
)

# An element equal to a bound still gets the gradient, as in PyTorch. Where both bounds are given and
# min > max, every element is max.
_BOTH = (
    lambda g, input, min, max: where((input >= min) & (input <= max), g, 0),
    lambda g, input, min, max: where((min < max) & (input < min), g, 0),
    lambda g, input, min, max: where((input > max) | (max < min), g, 0),
)
_CLAMP = {"accepts": "fiu", "function_name": "clamp"}
_clamp_tensors = elementwise(
    "clamp",
    ("input", "min", "max"),
    _BOTH,
    (REAL, interval(-2.0, -1.0), interval(0.5, 1.5)),
    formula=lambda input, min, max: minimum(maximum(input, min), max),
    node="ClampBackward0",
    doc="Return elements limited to a range given by tensors.",
    **_CLAMP,
)
_clamp_numbers = elementwise(
    "clamp_numbers",
    ("input", "min", "max"),
    (_BOTH[0], None, None),
    (REAL, number(-1.1), number(0.7)),
    formula=lambda input, min, max: minimum(maximum(input, min), max),
    node="ClampBackward1",
    numbers=("min", "max"),
    doc="Return elements limited to a range given by numbers.",
    **_CLAMP,
)
_ONE_SIDED = {}
for _side, _limit, _inside, _outside in (
    (
        "min",
        maximum,
        lambda g, input, bound: where(input >= bound, g, 0),
        lambda g, input, bound: where(input < bound, g, 0),
    ),
    (
        "max",
        minimum,
        lambda g, input, bound: where(input <= bound, g, 0),
        lambda g, input, bound: where(input > bound, g, 0),
    ),
):
    for _node, _by_number in (
        ("ClampBackward0", False),
        ("ClampBackward1", True),
        (f"Clamp{_side.title()}Backward1", False),
        (f"Clamp{_side.title()}Backward0", True),
    ):
        _ONE_SIDED[_side, _node.startswith("ClampB"), _by_number] = elementwise(
            f"{_node[:-9]}_{_side}_{'number' if _by_number else 'tensor'}".lower(),
            ("input", "bound"),
            (_inside, None if _by_number else _outside),
            (REAL, number(0.3)) if _by_number else apart(REAL),
            formula=_limit,
            node=_node,
            numbers=("bound",) if _by_number else (),
            doc=f"Return elements limited by a {_side}imum.",
            **_CLAMP,
        )


@public("clamp", "clip", inplace=True)
def clamp(
    input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None
) -> Tensor:
    """Return elements limited to the range from `min` to `max`; nan stays nan.

    Derivative: 1 inside the range and at its bounds, 0 outside.

    Parameters
    ----------
    input : tensor
    min, max : tensor or number, optional
        The bounds; tensors broadcast. Where ``min > max`` the result is `max`.

    Raises
    ------
    ValueError
        If neither bound is given.

    >>> import numgrad as ng
    >>> ng.tensor([-2.0, 0.5, 3.0]).clamp(-1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise ValueError("clamp: At least one of 'min' or 'max' must not be None")
    if min is not None and max is not None:
        by_tensors = isinstance(min, Tensor) or isinstance(max, Tensor)
        return (_clamp_tensors if by_tensors else _clamp_numbers)(input, min, max, out=out)
    side, bound = ("min", min) if max is None else ("max", max)
    return _ONE_SIDED[side, True, not isinstance(bound, Tensor)](input, bound, out=out)


@public(inplace=True)
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Return elements not below `min`; see `clamp`.

    >>> import numgrad as ng
    >>> ng.clamp_min(ng.tensor([-2.0, 3.0]), 0)
    tensor([0., 3.])
    """
    return _ONE_SIDED["min", False, not isinstance(min, Tensor)](input, min, out=out)


@public(inplace=True)
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Return elements not above `max`; see `clamp`.

    >>> import numgrad as ng
    >>> ng.clamp_max(ng.tensor([-2.0, 3.0]), 0)
    tensor([-2.,  0.])
    """
    return _ONE_SIDED["max", False, not isinstance(max, Tensor)](input, max, out=out)


# Comparisons: (name, aliases, what the docstring says, dtype kinds). No gradient flows.
for _name, _aliases, _words, _accepts in (
    ("eq", (), "are equal", "fciub"),
    ("ne", ("not_equal",), "differ", "fciub"),
    ("lt", ("less",), "rise: `input` is below `other`", "fiub"),
    ("le", ("less_equal",), "do not fall: `input` is at most `other`", "fiub"),
    ("gt", ("greater",), "fall: `input` is above `other`", "fiub"),
    ("ge", ("greater_equal",), "do not rise: `input` is at least `other`", "fiub"),
):
    publish(
        binary(
            _name,
            (None, None),
            (REAL, REAL),
            kind="bool",
            accepts=_accepts,
            doc=f"Return where elements {_words}. Nothing is equal to nan. No gradient flows.",
        ),
        *_aliases,
    )

for _name, _words in (
    ("logical_and", "neither element is 0"),
    ("logical_or", "not both elements are 0"),
    ("logical_xor", "exactly one element is 0"),
):
    publish(
        binary(
            _name,
            (None, None),
            (REAL, REAL),
            kind="bool",
            accepts="fciub",
            doc=f"Return where {_words}. No gradient flows.",
        )
    )

for _name, _words, _formula in (
    ("logical_not", "the element is 0", None),
    ("isnan", "the element is not a number", None),
    ("isinf", "the element is infinite", lambda input: absolute_of(input) == float("inf")),
    ("isfinite", "the element is neither infinite nor nan", lambda input: absolute_of(input) < float("inf")),
):
    publish(
        unary(
            _name,
            None,
            REAL,
            kind="bool",
            accepts="fciub",
            formula=_formula,
            doc=f"Return where {_words}. No gradient flows.",
        ),
        inplace=_name == "logical_not",
    )

for _name, _words in (
    ("bitwise_and", "set in both elements"),
    ("bitwise_or", "set in either element"),
    ("bitwise_xor", "set in exactly one element"),
):
    publish(
        binary(
            _name,
            (None, None),
            (REAL, REAL),
            accepts="iub",
            doc=f"Return the bits {_words}. No gradient flows.",
        )
    )

_bitwise_not = unary(
    "bitwise_not",
    None,
    REAL,
    kind="same",
    accepts="iub",
    doc="Return the inverted bits; for bool the logical inverse. No gradient flows.",
)
publish(_bitwise_not)
