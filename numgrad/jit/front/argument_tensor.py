"""The tensors that stand for arguments while a function is traced: they have no history to tell.

A trace is used for arguments of any history: leaves and computed ones, views, those that have a
gradient and those that were written to. So what depends on that is refused. This package asks, too,
and goes by what the tensor is for the traced function, a new leaf; but what it does with a
gradient would be lost, whoever asks.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from numgrad.graph.recorder import TracedTensor, TraceError
from numgrad.graph.tensor import Tensor, wrap
from numgrad.runtime.frames import is_of_package, where_user_is

__all__ = ["ArgumentTensor", "stand_for"]


def stand_for(argument: Any, array: Any) -> Tensor:
    """Return the tensor on a traced array that stands for an argument."""
    tensor: Any = wrap(array)
    tensor.__class__ = ArgumentTensor
    if isinstance(argument, Tensor) and argument.requires_grad:
        tensor._has_history, tensor._edge = True, None
    return tensor


def _refuse(name: str) -> NoReturn:
    raise TraceError(
        f"{where_user_is()}jit: the function asks one of its arguments for {name}, which may be "
        "another one in every call, while a trace is for all: ask outside, and pass that, or what "
        "follows from it, as an argument"
    )


def _told(name: str, of_history: bool = False) -> property:
    """Return an attribute that is refused to a user, if it is `of_history` where there is one."""
    attribute: Any = getattr(Tensor, name)
    is_property = isinstance(attribute, property)

    def get(self: Any) -> Any:
        file = sys._getframe(1).f_code.co_filename
        is_ours = is_of_package(file) or file.startswith("<numgrad ")  # generated code
        if not is_ours and (self._has_history or not of_history):
            _refuse(f"its {name}")
        return attribute.fget(self) if is_property else self.__dict__.get(name, attribute)

    def put(self: Any, value: Any) -> None:
        self.__dict__[name] = value

    return property(get, attribute.fset if is_property else put)


class ArgumentTensor(TracedTensor):
    """A tensor without numbers that stands for an argument."""

    is_leaf = _told("is_leaf", of_history=True)
    grad_fn = _told("grad_fn", of_history=True)
    output_nr = _told("output_nr", of_history=True)
    retains_grad = _told("retains_grad", of_history=True)
    _base = _told("_base")
    _version = _told("_version")

    @property
    def grad(self) -> Tensor:
        """The gradient, as far as the function accumulated any, which is refused at its end."""
        if self._grad is None:
            _refuse("its .grad")
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._no_other_grad()

    @grad.deleter
    def grad(self) -> None:
        self._no_other_grad()

    def _no_other_grad(self) -> NoReturn:
        raise TraceError(
            f"{where_user_is()}jit: the function sets the .grad of one of its arguments. That "
            "can't be compiled: return the gradient, and set it outside"
        )

    def _is_view(self) -> bool:
        _refuse("whether it is a view")


ArgumentTensor.__name__ = ArgumentTensor.__qualname__ = "Tensor"  # as messages call it
