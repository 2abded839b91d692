"""In-place methods, and their calls that are remembered.

The key of a call holds what its checks and its history depend on: dtypes, shapes and strides, which
tensors require grad, whether the one that is written to is a leaf, or a view, and of what. A call
with a key that was met before runs the straight-line Python that was made for it
(`numgrad.ops.core.write_programs`); any other goes the long way (`numgrad.ops.mutation.inplace`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.base import dtypes
from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.graph.modes import interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor, refresh_view
from numgrad.ops.core.dispatch import typed
from numgrad.ops.core.steps import Steps, note_steps
from numgrad.ops.core.write_programs import compile_write
from numgrad.ops.mutation.history import enter_view
from numgrad.ops.mutation.inplace import COMPARISONS, inplace, perform

__all__ = ["inplace_method"]


# Functions whose calls follow from their key: they look at no number in a tensor. Those that are
# one primitive (their `primitive`) do not, either.
_BY_FACTS = {
    *("abs", "addcdiv", "addcmul", "clamp", "clamp_max", "clamp_min", "conj_physical", "copy"),
    *("copysign", "fill", "fill_in_place", "heaviside", "lerp", "logit", "nan_to_num", "neg"),
    *("round", "square", "tril", "triu", "xlogy", "zero"),
}
# Those of them that apply one primitive to just what they are given by position, so that of a
# number its type alone matters; the others' numbers stand in keys.
_BY_TYPE = {"add", "div", "sub", "true_divide"}
# Numbers given by name that are the last operand of that primitive.
_FACTORS = {"add": "alpha", "addcdiv": "value", "addcmul": "value", "sub": "alpha"}
_IN_EVERY_FLOAT = 60000.0
# How often calls with a number in their key are met before there is a program for it.
_OFTEN = 32


class InPlaceCalls:
    """The calls of a function in place that are remembered.

    Attributes
    ----------
    function : callable
    by_type : bool
        Whether of a number that is given by position its type alone stands in keys.
    factor : str
        The number given by name that may be an operand; empty if there is none.
    programs : dict
        For each key what runs the call, or False if there is nothing but the long way.
    """

    __slots__ = ("by_type", "factor", "function", "programs", "seen")

    def __init__(self, function: Callable[..., Any]) -> None:
        name = function.__name__
        self.function = function
        self.by_type = hasattr(function, "primitive") or name in _BY_TYPE
        self.factor = _FACTORS.get(name, "")
        self.programs: dict[Any, Any] = {}
        self.seen: dict[Any, int] = {}

    def meet(
        self,
        key: tuple[Any, ...],
        statics: Sequence[Any],
        tensor: Tensor,
        operands: tuple[Any, ...],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Tensor:
        """Run a call whose key has no program."""
        function, programs, seen = self.function, self.programs, self.seen
        try:
            plain = all(typed(each)[0] not in (tuple, list, slice) for each in statics)
        except TypeError:
            plain = False
        if not plain:
            return inplace(function, tensor, *arguments, **keywords)
        if len(seen) >= REMEMBERED_CALLS:
            seen.clear()
        times = seen[key] = seen.get(key, 0) + 1
        if times < (_OFTEN if statics else 2):
            return inplace(function, tensor, *arguments, **keywords)
        noted: list[Any] = []

        def run(stand_in: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
            result, steps = note_steps(function, stand_in, *arguments, **keywords)
            noted.extend((stand_in, result, steps))
            return result  # type: ignore[no-any-return]

        perform(function, run, tensor, arguments, keywords)
        if len(programs) >= REMEMBERED_CALLS:
            programs.clear()
        programs[key] = self._compile(tensor, operands, statics, *noted) or False
        return tensor

    def _compile(
        self,
        tensor: Tensor,
        operands: tuple[Any, ...],
        statics: Sequence[Any],
        stand_in: Tensor,
        result: Tensor,
        steps: Steps,
    ) -> Callable[..., Any] | None:
        """Return what runs such calls, after one of them; None if nothing can."""
        recorded = [each for each in (tensor, *operands) if getattr(each, "requires_grad", False)]
        if recorded and self.function.__name__ in COMPARISONS:
            return None  # their nodes are not those of a step
        edge, enter = result._edge, None
        if tensor._base is not None:
            enter = enter_view
            if edge is not NO_EDGE and edge is not None:
                copied: Any = tensor._base._edge
                if copied[0].saved[0] is not edge[0]:
                    return None  # written as if it were copied from something computed
        by_type = self.by_type and not statics
        taken = (stand_in, *operands)
        return compile_write(taken, steps, result, in_order=by_type, enter=enter)


def inplace_method(function: Callable[..., Any], name: str) -> Callable[..., Tensor]:
    """Return the in-place method of a function, such as ``add_`` of ``add``."""
    if not (hasattr(function, "primitive") or function.__name__ in _BY_FACTS | _BY_TYPE):

        def method(self: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
            return inplace(function, self, *arguments, **keywords)

    else:
        method = _remembering_method(function)
    method.__name__ = method.__qualname__ = name
    method.__module__ = "numgrad"
    method.__doc__ = (
        f"In-place version of `{name[:-1]}`: the result is written into this tensor.\n\n"
        "Raises RuntimeError for a leaf that requires grad (or a view of one) while grad mode is "
        "on, and if the result does not fit this tensor's shape and dtype."
    )
    return method


def _remembering_method(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return the method of a function whose calls follow from their keys."""
    calls = InPlaceCalls(function)
    find, meet, by_type, factor = calls.programs.get, calls.meet, calls.by_type, calls.factor
    defaults = dtypes.defaults

    def method(self: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        if type(self) is not Tensor or interceptors:
            return inplace(function, self, *arguments, **keywords)
        array, counter, base, grad = self._array, self._counter, self._base, modes.grad
        key: list[Any] = [array.shape, array.strides, array.dtype, grad, defaults.floating]
        operands, statics, numbers_count = arguments, (), by_type
        try:
            if base is not None:
                history, origin = base._edge, self._view_origin
                if grad and (history is None or (origin and history is not NO_EDGE)):
                    return inplace(function, self, *arguments, **keywords)  # which raises
                refresh_view(self)
                key.append((history is NO_EDGE, origin))
            edge = self._edge
            if (edge is None and grad) or type(counter) is not list:
                return inplace(function, self, *arguments, **keywords)  # which raises
            if keywords:
                number = keywords.get(factor)
                if type(number) is float and len(keywords) == 1 and abs(number) < _IN_EVERY_FLOAT:
                    operands = (*arguments, number)
                    key.append(factor)
                    numbers_count = True
                else:
                    numbers_count = False
                    statics = (*keywords.values(),)
                    key += (*keywords.items(), *map(type, statics))
            needs = edge is not NO_EDGE
            bit, known = 2, None
            for each in operands:
                if type(each) is Tensor:
                    if each._counter is counter:  # they may overlap
                        return inplace(function, self, *arguments, **keywords)
                    if each._base is not None:
                        refresh_view(each)
                    if each._edge is not NO_EDGE:
                        needs += bit
                    other = each._array
                    key += (other.shape, other.strides, other.dtype, each is known)
                    known = each
                elif numbers_count:
                    key.append(type(each))
                else:
                    statics += (each,)
                    key += (each, type(each))
                bit += bit
            key.append(needs)
            known_key = (*key,)
            found = find(known_key)
        except (RuntimeError, TypeError):  # a view without a history; what can't stand in a key
            return inplace(function, self, *arguments, **keywords)
        if found:
            written: Tensor = found(self, *operands)
            return written
        if found is None:
            return meet(known_key, statics, self, operands, arguments, keywords)
        return inplace(function, self, *arguments, **keywords)

    return method
