"""Operators of tensors: each calls the function of its name; operands of others get their turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS, INPLACE, OPERANDS, make_operator
from numgrad.ops.creation.from_data import as_tensor
from numgrad.ops.later_attributes import bind_later

__all__ = ["bind_operators"]


def _operator(name: str) -> Callable[[Tensor, Any], Any]:
    """Return the operator of a function; foreign operands get their turn."""
    function = FUNCTIONS[name]

    def operator(self: Tensor, other: Any) -> Any:
        if isinstance(other, OPERANDS):
            return function(self, other)
        if isinstance(other, np.ndarray):
            return function(self, as_tensor(other))
        return NotImplemented

    return operator


def _direct_operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    return make_operator(CATALOGUE[name], reflected=reflected)


def _augmented(name: str) -> Callable[[Tensor, Any], Tensor]:
    """Return the operator of an in-place method; it takes arrays, too."""
    method = getattr(Tensor, f"{name}_")

    def operator(self: Tensor, other: Any) -> Tensor:
        if isinstance(other, np.ndarray):
            other = as_tensor(other)
        written: Tensor = method(self, other)
        return written

    return operator


def _reflected(name: str) -> Callable[[Tensor, Any], Any]:
    """Return the reflected operator of a function: ``other op self`` for a number `other`."""
    function = FUNCTIONS[name]

    def operator(self: Tensor, other: Any) -> Any:
        return function(other, self) if isinstance(other, OPERANDS) else NotImplemented

    return operator


def _rtruediv(self: Tensor, other: Any) -> Any:
    if not isinstance(other, OPERANDS):
        return NotImplemented
    return FUNCTIONS["mul"](FUNCTIONS["reciprocal"](self), other)


def _rsub(self: Tensor, other: Any) -> Any:
    return FUNCTIONS["rsub"](self, other) if isinstance(other, OPERANDS) else NotImplemented


def _matmul(self: Tensor, other: Any) -> Any:
    if isinstance(other, np.ndarray):
        other = as_tensor(other)
    return FUNCTIONS["matmul"](self, other) if isinstance(other, Tensor) else NotImplemented


def _rmatmul(self: Tensor, other: Any) -> Any:
    return FUNCTIONS["matmul"](other, self) if isinstance(other, Tensor) else NotImplemented


def _reversed(self: Tensor) -> Any:
    return FUNCTIONS["flip"](self, (0,)) if self._array.ndim else self


def _invert(self: Tensor) -> Any:
    if self._array.dtype.kind in "fc":
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return FUNCTIONS["bitwise_not"](self)


def _contains(self: Tensor, element: Any) -> bool:
    """Return whether any element equals a number or tensor."""
    if not isinstance(element, OPERANDS):
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )
    return bool(FUNCTIONS["eq"](self, element).any())


# The operator of each function, and what the in-place operator calls.
_OPERATORS = {
    "sub": "sub",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
}
# The hottest calls there are go to a primitive directly.
_HOT = {"add": "add", "mul": "mul", "truediv": "true_divide"}
_WRITTEN_OUT = {
    "rsub": _rsub,
    "rtruediv": _rtruediv,
    "rdiv": _rtruediv,  # Python 2's name, which PyTorch has kept
    "matmul": _matmul,
    "rmatmul": _rmatmul,
    "reversed": _reversed,
    "invert": _invert,
    "contains": _contains,
}
_AUGMENTED = {**_OPERATORS, "add": "add", "mul": "mul", "truediv": "div"}


def bind_operators() -> None:
    """Put every operator on `Tensor`."""
    for name, target in _OPERATORS.items():
        _bind_operator(f"__{name}__", _operator, target)
    for name, target in _HOT.items():
        _bind_operator(f"__{name}__", _direct_operator, target)
    for name in ("add", "mul"):
        _bind_operator(f"__r{name}__", _direct_operator, name, True)
    for name in ("and", "or", "xor"):
        _bind_operator(f"__r{name}__", _operator, _OPERATORS[name])
    for name in ("floordiv", "mod", "pow", "lshift", "rshift"):
        _bind_operator(f"__r{name}__", _reflected, _OPERATORS[name])
    for name, operator in _WRITTEN_OUT.items():
        setattr(Tensor, f"__{name}__", _named(operator, f"__{name}__"))
    for name, target in _AUGMENTED.items():
        if INPLACE.has(f"{target}_"):
            _bind_operator(f"__i{name}__", _augmented, target)
    for name in ("eq", "ne"):
        _bind_operator(f"__{name}__", _operator, name)


def _bind_operator(name: str, make: Callable[..., Any], *arguments: Any) -> None:
    """Have an operator made when it is first used; pickles find it by its name."""
    bind_later(name, lambda: _named(make(*arguments), name))


def _named(operator: Any, name: str) -> Any:
    operator.__name__, operator.__qualname__ = name, f"Tensor.{name}"
    operator.__module__ = "numgrad"
    return operator
