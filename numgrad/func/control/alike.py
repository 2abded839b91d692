"""What branches return, where a branch that is taken is compared with those that are not.

As in PyTorch and JAX, a branch that is not taken runs once without numbers: what it returns is
known then for all calls with operands of the same kind, of the same functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from numgrad.base import pytree
from numgrad.base.pytree import TreeSpec
from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.func.control.arguments import Leaves, read_leaves
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import TraceError
from numgrad.graph.tensor import Tensor

__all__ = ["Returned", "compare_without_numbers"]

Read = tuple[Leaves, TreeSpec]
_NUMBERS = frozenset((bool, int, float, complex, str, bytes, type(None)))


class Returned:
    """What the branches of one call returned before, in calls that are alike."""

    def __init__(
        self, branches: Sequence[Callable[..., Any]], leaves: Leaves, spec: TreeSpec
    ) -> None:
        given = spec, *[_fact(leaf) for leaf in leaves]
        self._branches = branches
        self._keys = [_facts(branch) for branch in branches]
        if len(_returned) >= REMEMBERED_CALLS:
            _returned.clear()
        self._returned = _returned.setdefault(given, {})

    def note(self, position: int, result: Read) -> Any:
        """Note what a branch returned, and return that as it is compared."""
        leaves, spec = result
        found = tuple([_fact(leaf) for leaf in leaves]), spec
        if len(self._returned) >= REMEMBERED_CALLS:
            self._returned.clear()
        self._returned[self._keys[position]] = found, _code_of(self._branches[position])
        return found

    def before(self, position: int) -> Any:
        """Return what a branch returned before, None if that is not known."""
        found = self._returned.get(self._keys[position])
        return None if found is None else found[0]


# By the operands, and then by the branch; with its code, so that no other has its address.
_returned: dict[Any, dict[Any, tuple[Any, Any]]] = {}


def _fact(value: Any) -> Any:
    """Return what of a value decides which shapes come of it, as far as that is seen quickly."""
    kind = type(value)
    if kind is Tensor:
        array = value._array
        return array.dtype, array.shape
    if kind in _NUMBERS:
        return kind, value
    return (value.dtype, value.shape) if isinstance(value, (Tensor, np.ndarray)) else kind


def _facts(function: Any) -> Any:
    """Return the same of a function and what it has by itself."""
    if isinstance(function, FunctionType):
        code, closure, defaults = id(function.__code__), function.__closure__, function.__defaults__
        if closure is None and defaults is None:
            return code
        return code, *map(_fact, defaults or ()), *map(_content, closure or ())
    if isinstance(function, functools.partial):
        own = *function.args, *function.keywords.values()
        return _facts(function.func), *function.keywords, *map(_fact, own)
    if isinstance(function, MethodType):
        return _facts(function.__func__), type(function.__self__)
    return id(function)


def _code_of(function: Any) -> Any:
    """Return what `_facts` know a function by: its code, or what else can be called."""
    while isinstance(function, (functools.partial, MethodType)):
        if isinstance(function, functools.partial):
            function = function.func
        else:
            function = function.__func__
    return function.__code__ if isinstance(function, FunctionType) else function


def _content(cell: Any) -> Any:
    try:
        return _fact(cell.cell_contents)
    except ValueError:  # it is empty
        return None


def compare_without_numbers(
    branch: Callable[..., Any], leaves: Leaves, spec: Any, compare: Callable[[Read], None]
) -> None:
    """Compare what a function returns for such operands, if that does not follow from numbers.

    Parameters
    ----------
    branch : callable
    leaves : list of Tensor or None
        The leaves of its operands.
    spec : TreeSpec
        The structure of these, a tuple.
    compare : callable
        Is given the leaves of the result, and its structure.
    """
    if modes.dual is not None:  # tangents are not traced
        return
    # What traces is loaded when something is traced first.
    from numgrad.jit.front.argument_tensor import stand_for
    from numgrad.jit.front.tracer import Tracer

    tracer = Tracer()
    try:
        with tracer.open():
            given = [
                None if leaf is None else stand_for(leaf, tracer.argument(leaf._array, number))
                for number, leaf in enumerate(leaves)
            ]
            compare(read_leaves(branch(*pytree.unflatten(spec, given)), "result"))
    except (TraceError, RecursionError):  # which a branch that is not taken may end
        return
