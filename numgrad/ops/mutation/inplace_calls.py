"""In-place methods, and their calls that are remembered.

The key of a call holds what its checks and its history depend on: dtypes, shapes and strides, which
tensors require grad, whether the one that is written to is a leaf, or a view, and of what. A call
with a key that was met before runs the straight-line Python that was made for it
(`numgrad.ops.core.write_programs`); any other goes the long way (`numgrad.ops.mutation.inplace`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.graph.modes import interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor, refresh_view
from numgrad.ops.core.catalogue import replaced
from numgrad.ops.core.dispatch import typed
from numgrad.ops.core.steps import Steps, note_steps
from numgrad.ops.core.write_programs import compile_write
from numgrad.ops.mutation.history import enter_view
from numgrad.ops.mutation.inplace import COMPARISONS, inplace, perform, rule_name

__all__ = ["inplace_method"]


# Functions whose calls follow from their key: they look at no number in a tensor, nor do those
# that are one `primitive` of their operands, of whose numbers the type alone stands in keys.
_BY_FACTS = {
    *("absolute", "addcdiv", "addcmul", "clamp", "clamp_max", "clamp_min", "conj_physical", "copy"),
    *(
        "ceil",
        "copysign",
        "fill",
        "floor",
        "trunc",
        "heaviside",
        "lerp",
        "logit",
        "nan_to_num",
        "neg",
    ),
    *("round", "square", "tril", "triu", "xlogy", "zero"),
}
# Numbers given by name that are the last operand of that primitive.
_FACTORS = {"add": "alpha", "addcdiv": "value", "addcmul": "value", "sub": "alpha"}
_IN_EVERY_FLOAT = 65504.0
# How often calls with a number in their key are met before there is a program for it.
_OFTEN = 32


_TABLES: WeakSet[InPlaceCalls] = WeakSet()


def _forget() -> None:
    """Forget all calls: what a name of an operation stands for has changed."""
    for calls in _TABLES:
        calls.programs.clear()
        calls.seen.clear()


replaced.append(_forget)


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

    __slots__ = ("__weakref__", "by_type", "factor", "function", "programs", "seen")

    def __init__(self, function: Callable[..., Any]) -> None:
        name = rule_name(function)
        self.function = function
        self.by_type = hasattr(function, "primitive")
        self.factor = _FACTORS.get(name, "")
        self.programs: dict[Any, Any] = {}
        self.seen: dict[Any, int] = {}
        _TABLES.add(self)

    def run(self, tensor: Tensor, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Tensor:
        """Run a call by its program, if there is one, or the long way."""
        described = None
        if type(tensor) is Tensor and not interceptors:
            with suppress(RuntimeError):  # a view without a history
                described = self.key_of(tensor, arguments, keywords)
        if described is not None:
            key, operands, statics = described
            try:
                found = self.programs.get(key)
            except TypeError:  # a number in it that is a list, say
                found = False
            if found:
                written: Tensor = found(tensor, *operands)
                return written
            if found is None and self._is_met_often(key, statics):
                return self._note(key, tensor, operands, statics, arguments, keywords)
        return inplace(self.function, tensor, *arguments, **keywords)

    def key_of(
        self, tensor: Tensor, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]] | None:
        """Return what a call is known by, its operands, and the numbers that its key holds.

        None if checks of the long way are to say what is wrong with it, or might be.
        """
        array, counter, base, grad = tensor._array, tensor._counter, tensor._base, modes.grad
        key: list[Any] = [array.shape, array.strides, array.dtype]
        view = ""
        if base is not None:
            history, origin = base._edge, tensor._view_origin
            if grad and (history is None or (origin and history is not NO_EDGE)):
                return None
            refresh_view(tensor)
            view = f"of a {'constant' if history is NO_EDGE else 'result'}{origin}"
        if (tensor._edge is None and grad) or type(counter) is not list:
            return None
        operands, by_type = arguments, self.by_type
        statics: tuple[Any, ...] = ()
        before: list[Any] = []
        if keywords:
            number = keywords.get(self.factor)
            if type(number) is float and len(keywords) == 1 and abs(number) < _IN_EVERY_FLOAT:
                operands = (*arguments, number)
                key.append(self.factor)
                by_type = True
            else:
                by_type = False
                statics = (*keywords.values(),)
                key += (*keywords.items(), *map(type, statics))
        needs, bit = int(tensor._edge is not NO_EDGE), 2
        for each in operands:
            if type(each) is Tensor:
                if each._counter is counter:  # they may overlap
                    return None
                if each._base is not None:
                    refresh_view(each)
                if each._edge is not NO_EDGE:
                    needs += bit
                other = each._array
                key += (other.shape, other.strides, other.dtype)
                key += [each is another for another in before]
                before.append(each)
            elif by_type:
                key.append(type(each))
            else:
                statics += (each,)
                key += (each, type(each))
            bit += bit
        return (needs if grad else -needs, view, (*key,)), operands, statics

    def _is_met_often(self, key: tuple[Any, ...], statics: Sequence[Any]) -> bool:
        """Whether a program for calls of this key would pay, if there can be one."""
        try:
            if any(typed(each)[0] in (tuple, list, slice) for each in statics):
                return False
        except TypeError:
            return False
        seen = self.seen
        if len(seen) >= REMEMBERED_CALLS:
            seen.clear()
        times = seen[key] = seen.get(key, 0) + 1
        return times >= (_OFTEN if statics else 2)

    def _note(
        self,
        key: tuple[Any, ...],
        tensor: Tensor,
        operands: tuple[Any, ...],
        statics: Sequence[Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Tensor:
        """Go the long way, and make a program of what that came to."""
        function, programs = self.function, self.programs
        noted: list[Any] = []

        def run(stand_in: Tensor, *arguments: Any, **keywords: Any) -> Any:
            result, steps = note_steps(function, stand_in, *arguments, **keywords)
            noted.extend((stand_in, result, steps))
            return result

        perform(function, run, tensor, arguments, keywords)
        if len(programs) >= REMEMBERED_CALLS:
            programs.clear()
        in_order = len(statics) == 0 and len(operands) > 0 and self.by_type
        programs[key] = self._compile(tensor, operands, in_order, *noted) or False
        return tensor

    def _compile(
        self,
        tensor: Tensor,
        operands: tuple[Any, ...],
        in_order: bool,
        stand_in: Tensor,
        result: Tensor,
        steps: Steps,
    ) -> Callable[..., Any] | None:
        """Return what runs such calls, after one of them; None if nothing can."""
        recorded = [each for each in (tensor, *operands) if getattr(each, "requires_grad", False)]
        if recorded and rule_name(self.function) in COMPARISONS:
            return None  # their nodes are not those of a step
        edge, enter = result._edge, None
        if tensor._base is not None:
            enter = enter_view
            if edge is not NO_EDGE and edge is not None:
                copied: Any = tensor._base._edge
                if copied[0].saved[0] is not edge[0]:
                    return None  # written as if it were copied from something computed
        return compile_write((stand_in, *operands), steps, result, in_order=in_order, enter=enter)


def inplace_method(function: Callable[..., Any], name: str) -> Callable[..., Tensor]:
    """Return the in-place method of a function, such as ``add_`` of ``add``."""
    if not (hasattr(function, "primitive") or rule_name(function) in _BY_FACTS):

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
    find, run, by_type = calls.programs.get, calls.run, calls.by_type

    def method(self: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        if type(self) is not Tensor or len(arguments) > 2 or keywords or interceptors:
            return run(self, arguments, keywords)
        # What `key_of` finds where nothing is in the way of the history.
        base, view = self._base, ""
        if base is not None:
            view = "of a constant" if base._edge is NO_EDGE else "of a result"
            if self._view_origin or base._edge is None:
                return run(self, arguments, keywords)
            refresh_view(self)
        array, edge = self._array, self._edge
        needs = 0 if edge is NO_EDGE else 1
        key: Any = array.shape, array.strides, array.dtype
        for each in arguments:
            if type(each) is Tensor:
                if (
                    each._counter is self._counter
                    or (each._base is not None and each._view_origin)
                    or len(key) > 3  # not the first
                ):
                    return run(self, arguments, keywords)
                if each._base is not None:
                    refresh_view(each)
                if each._edge is not NO_EDGE:
                    needs += 2
                other = each._array
                key = *key, other.shape, other.strides, other.dtype
            elif by_type:
                key = *key, type(each)
            else:
                key = *key, each, type(each)
        if needs:
            if not modes.grad:
                needs = -needs
            elif edge is None:
                return run(self, arguments, keywords)
        try:
            found = find((needs, view, key))
        except TypeError:  # of a list
            found = None
        if found and type(self._counter) is list:
            written: Tensor = found(self, *arguments)
            return written
        return run(self, arguments, keywords)

    return method
