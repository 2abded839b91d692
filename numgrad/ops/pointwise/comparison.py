"""Comparison, logic and bitwise operations: bools or integers; no gradient flows."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.codegen.expression import Symbol
from numgrad.graph.recorder import is_traced_array
from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.loop_order import NUMBER, copy_order, result_order
from numgrad.kernels.move.memory_order import empty_by, empty_for
from numgrad.ops.core.declare import NotDifferentiable, binary, elementwise, unary
from numgrad.ops.core.domains import REAL, number
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.out_argument import SAME_DTYPE
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.pointwise.selection import where
from numgrad.ops.signatures.declared import declare
from numgrad.ops.signatures.published import publish

__all__ = ["allclose", "eq", "equal", "heaviside", "isclose", "isfinite", "isinf", "isnan"]

_NO_GRADIENT = "No gradient flows."
# Those of bits: a number that comes first is taken without an `out`.
_OPERANDS = (
    "Tensor input, Tensor other, *, Tensor? out=None",
    "number input, Tensor other",
    "Tensor input, number other, *, Tensor? out=None",
)

# (name, alias, what the docstring says, dtype kinds, what the example gives)
for _name, _alias, _words, _accepts, _values in (
    ("eq", (), "are equal", "fciub", "False,  True, False"),
    ("ne", ("not_equal",), "differ", "fciub", " True, False,  True"),
    ("lt", ("less",), "of `input` are below those of `other`", "fiub", " True, False, False"),
    (
        "le",
        ("less_equal",),
        "of `input` are at most those of `other`",
        "fiub",
        " True,  True, False",
    ),
    ("gt", ("greater",), "of `input` are above those of `other`", "fiub", "False, False,  True"),
    (
        "ge",
        ("greater_equal",),
        "of `input` are at least those of `other`",
        "fiub",
        "False,  True,  True",
    ),
):
    publish(
        binary(
            _name,
            (None, None),
            (REAL, REAL),
            kind="bool",
            accepts=_accepts,
            doc=f"Return where elements {_words}; nothing compares with nan. {_NO_GRADIENT}",
            example=f"ng.{_name}(ng.tensor([1.0, 2.0, 3.0]), 2.0)\ntensor([{_values}])",
        ),
        *_alias,
        # NumPy's functions of these names take a number first.
        signatures=("operand input, Tensor other", "Tensor input, number other"),
    )

eq = FUNCTIONS["eq"]

for _name, _words, _values in (
    ("logical_and", "neither element is 0", "False, False,  True"),
    ("logical_or", "not both elements are 0", "False,  True,  True"),
    ("logical_xor", "exactly one element is 0", "False,  True, False"),
):
    publish(
        binary(
            _name,
            (None, None),
            (REAL, REAL),
            kind="bool",
            accepts="fciub",
            doc=f"Return where {_words}. {_NO_GRADIENT}",
            example=f"ng.{_name}(ng.tensor([0, 0, 2]), ng.tensor([0, 1, 1]))\ntensor([{_values}])",
        )
    )


def _no_complex(name: str) -> dict[str, Exception]:
    return {"c": RuntimeError(f"{name} does not support complex inputs.")}


def _truth(name: str, words: str, values: str, **options: Any) -> ElementwisePrimitive:
    """Declare an operation that answers a question about an element."""
    return unary(
        name,
        None,
        REAL,
        kind="bool",
        accepts=options.pop("accepts", "fciub"),
        doc=f"Return where the element {words}. {_NO_GRADIENT}",
        example=f"ng.{name}(ng.tensor([0.0, -ng.inf, ng.nan]))\ntensor([{values}])",
        **options,
    )


def _as_parts_compared(arrays: list[Any]) -> Any:
    """Return how the answers lie whether sizes, of the real part, are equal to a number."""
    (array,) = arrays
    if array.dtype.kind in "iub":
        return copy_order(array)
    return [empty_for(array.shape, bool, [array.real]), NUMBER]


def _as_itself_and_its_size(arrays: list[Any]) -> Any:
    """Return how the answers lie whether an element is itself, and its size not a number."""
    (array,) = arrays
    if array.dtype.kind in "iub":
        return copy_order(array)
    size = copy_order(array) if array.dtype.kind == "c" else result_order(array.shape, arrays)
    sizes = empty_by(size, array.shape, bool)
    return [empty_for(array.shape, bool, arrays), empty_for(array.shape, bool, [sizes, NUMBER])]


_INF = float("inf")
logical_not = publish(_truth("logical_not", "is 0", " True, False, False"))
isnan = publish(_truth("isnan", "is not a number", "False, False,  True"), inplace=False, out=False)
isinf = publish(
    _truth("isinf", "is infinite", "False,  True, False", deciding=_as_parts_compared),
    inplace=False,
    out=False,
)
isfinite = publish(
    _truth(
        "isfinite",
        "is neither infinite nor nan",
        " True, False, False",
        deciding=_as_itself_and_its_size,
    ),
    inplace=False,
    out=False,
)
isposinf = publish(
    _truth(
        "isposinf",
        "is positive infinity",
        "False, False, False",
        formula=lambda input: Symbol.apply("isinf", input) & (input > 0),
        accepts="fiub",
        refuses=_no_complex("isposinf"),
        out_differs="isposinf does not support non-boolean outputs.",
    ),
    inplace=False,
)
isneginf = publish(
    _truth(
        "isneginf",
        "is negative infinity",
        "False,  True, False",
        formula=lambda input: Symbol.apply("isinf", input) & (input < 0),
        accepts="fiub",
        refuses=_no_complex("isneginf"),
        out_differs="isneginf does not support non-boolean outputs.",
    ),
    inplace=False,
)
isreal = publish(
    _truth(
        "isreal",
        "has no imaginary part",
        "True, True, True",
        formula=lambda input: Symbol.apply("imag", input) == 0 if input.is_complex else True,
        deciding=lambda arrays: (
            [arrays[0].imag, NUMBER] if arrays[0].dtype.kind == "c" else copy_order(arrays[0])
        ),
    ),
    inplace=False,
    out=False,
)
signbit = publish(
    _truth(
        "signbit",
        "has a minus for its sign, -0.0 too",
        "False,  True, False",
        accepts="fiub",
        out_differs="signbit does not support non-boolean outputs.",
        refuses={"c": NotImplementedError("signbit is not implemented for complex tensors.")},
    ),
    inplace=False,
)

for _name, _words, _values in (
    ("bitwise_and", "set in both elements", "0, 1, 2"),
    ("bitwise_or", "set in either element", "3, 3, 7"),
    ("bitwise_xor", "set in exactly one element", "3, 2, 5"),
):
    publish(
        binary(
            _name,
            (None, None),
            (REAL, REAL),
            accepts="iub",
            doc=f"Return the bits {_words}. {_NO_GRADIENT}",
            example=f"ng.{_name}(ng.tensor([1, 3, 6]), ng.tensor([2, 1, 3]))\ntensor([{_values}])",
        ),
        signatures=_OPERANDS,
        out=False,
    )
for _name, _kernel, _direction, _values in (
    ("bitwise_left_shift", "lshift_cpu", "up", " 2, 12, 48"),
    ("bitwise_right_shift", "rshift_cpu", "down", "0, 0, 0"),
):
    publish(
        binary(
            _name,
            (None, None),
            (REAL, REAL),
            accepts="iu",
            kernel_name=_kernel,
            doc=f"""Return the bits of `input`, moved {_direction} by `other` places.

            The sign of `input` is kept. By a negative number of places, or by as many as there are
            bits, nothing is left but the sign to the right, and 0 to the left. {_NO_GRADIENT}""",
            example=f"ng.{_name}(ng.tensor([1, 3, 6]), ng.tensor([1, 2, 3]))\ntensor([{_values}])",
        ),
        signatures=_OPERANDS,
        out=False,
    )
publish(
    unary(
        "bitwise_not",
        None,
        REAL,
        kind="same",
        out_differs=SAME_DTYPE,
        accepts="iub",
        doc=f"Return the inverted bits; for bool the logical inverse. {_NO_GRADIENT}",
        example="ng.bitwise_not(ng.tensor([0, 5]))\ntensor([-1, -6])",
    )
)

_ISCLOSE = elementwise(
    "isclose",
    ("input", "other", "rtol", "atol", "equal_nan"),
    (None, None, None, None, None),
    (REAL, REAL, number(0.5), number(0.25), number(1.0)),
    formula=lambda input, other, rtol, atol, equal_nan: (
        (input == other)
        | (
            Symbol.apply("isfinite", input - other)
            & (_size(input - other) <= _size(atol) + _size(rtol * other))
        )
        | ((equal_nan != 0) & (input != input) & (other != other))
    ),
    kind="bool",
    accepts="fciub",
    node="IscloseBackward0",
    numbers=("rtol", "atol", "equal_nan"),
    doc="Return where elements are nearly equal.",
)


def _size(value: Symbol) -> Symbol:
    return Symbol.apply("abs", value)


_CLOSE = "Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False"


@declare(f"isclose({_CLOSE})", dispatched=True)
def isclose(input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Tensor:
    """Return where ``abs(input - other) <= atol + rtol * abs(other)``. No gradient flows.

    Parameters
    ----------
    input, other
        Of one dtype; they broadcast.
    rtol, atol
        The relative and the absolute tolerance.
    equal_nan
        Whether two nans are close.

    Raises
    ------
    RuntimeError
        For different dtypes, or a negative tolerance.

    >>> import numgrad as ng
    >>> ng.isclose(ng.tensor([1.0, 2.0]), ng.tensor([1.000001, 2.1]))
    tensor([ True, False])
    """
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not tolerance >= 0:  # or nan
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {tolerance:g}"
            )
    if not (rtol or atol or input.is_floating_point() or input.is_complex()):
        return eq(input, other)
    # Float tolerances promote integers to the default floating point dtype.
    result: Tensor = _ISCLOSE(input, other, float(rtol), float(atol), float(equal_nan))
    return result


@declare(f"allclose({_CLOSE})")
def allclose(input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> bool:
    """Return whether all elements are close; see `isclose`.

    >>> import numgrad as ng
    >>> ng.allclose(ng.tensor([1.0, 2.0]), ng.tensor([1.000001, 2.0]))
    True
    """
    array = isclose(input, other, rtol, atol, equal_nan)._array
    return bool(array) if is_traced_array(array) else bool(array.all())


@declare("equal(Tensor input, Tensor other)")
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and the same elements.

    >>> import numgrad as ng
    >>> ng.equal(ng.tensor([1.0, 2.0]), ng.tensor([1.0, 2.0]))
    True
    """
    for array in (input._array, other._array):
        if is_traced_array(array):  # NumPy would say that they differ
            return bool(array)
    return bool(np.array_equal(input._array, other._array))


_HEAVISIDE = NotDifferentiable(
    "heaviside",
    ("input", "values"),
    (None, None),
    (REAL, REAL),
    formula=lambda input, values: where(input == 0, values, where(input > 0, 1, 0)),
    accepts="fiub",
    out_differs="heaviside is not yet implemented for tensors with different dtypes.",
    refuses={"c": RuntimeError("heaviside is not yet implemented for complex tensors.")},
    doc="Return the step function.",
)


@declare(
    "heaviside(Tensor input, Tensor values, *, Tensor? out=None)", inplace=True, dispatched=True
)
def heaviside(input: Tensor, values: Tensor, out: Tensor | None) -> Tensor:
    """Return 0 where `input` is negative, `values` where it is 0, and 1 elsewhere.

    It is not differentiable: as in PyTorch, a backward pass through it raises.

    Parameters
    ----------
    input, values
        Of one dtype; they broadcast.

    Raises
    ------
    RuntimeError
        For different dtypes, and for complex ones.

    >>> import numgrad as ng
    >>> ng.heaviside(ng.tensor([-1.5, 0.0, 2.0]), ng.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    _HEAVISIDE.check_dtype(input.dtype)
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    result: Tensor = _HEAVISIDE(input, values, out=out)
    return result
