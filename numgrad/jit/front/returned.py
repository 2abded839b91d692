"""Refuse results of a traced function that hide tensors of it, or are text that shows some."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from numgrad.graph.recorder import TracedTensor, TraceError
from numgrad.graph.tensor import Tensor
from numgrad.jit.capture.guards import is_a, is_number
from numgrad.jit.capture.lookups import PLAIN, own_attributes
from numgrad.jit.capture.values import contents_of

__all__ = ["refuse_hidden", "refuse_text"]

_VIEWS = tuple(map(type, ({}.keys(), {}.values(), {}.items())))
_ITEMS = (tuple, list, set, frozenset, deque, *_VIEWS)
_CLOSED = (*PLAIN, ModuleType, type)  # in which nothing is looked for


def refuse_hidden(tracer: Any, leaf: Any, beginning: str) -> None:
    """Raise for a result that is no tensor, but holds some of the trace, or gives what it did not.

    Raises
    ------
    TraceError
        Its message starts with `beginning`, the line of the function.
    """
    kind = type(leaf).__name__
    if hasattr(type(leaf), "__next__"):
        raise TraceError(
            f"{beginning}jit: the function returns a {kind}, which is gone through once, and a "
            "compiled function returns it in every call: return a list or a tuple of what it gives"
        )
    if _holds_traced(leaf, tracer):
        raise TraceError(
            f"{beginning}jit: the function returns a {kind} with a tensor in it that it computed. "
            "Tensors are found in tuples, lists, dicts and dataclasses: return one of these, or "
            "say how to take a class apart, by numgrad.base.pytree.register"
        )


def refuse_text(tracer: Any, leaves: Iterable[Any], spec: Any, beginning: str) -> None:
    """Raise for text among results, or keys of dicts of them, that shows a tensor of the trace.

    Raises
    ------
    TraceError
        Its message starts with `beginning`, the line of the function.
    """
    if not tracer.described:
        return
    texts = [repr(spec)]
    for leaf in leaves:
        texts += [each if is_a(each, str) else repr(each) for each in _inside(leaf, (str, bytes))]
    if any(shown in text for shown in tracer.described for text in texts):
        raise TraceError(
            f"{beginning}jit: the function returns text that it made of a traced tensor, which has "
            "no numbers that text could show, and would be the same in every call: return the "
            "tensor, and format what the call gives"
        )


def _holds_traced(value: Any, tracer: Any) -> bool:
    """Whether there is a tensor of this trace in an object, as an item, attribute or variable."""
    found = _inside(value, (TracedTensor,))
    return any(each._traced.storage.recorder is tracer for each in found)


def _inside(value: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    """Yield the objects of some classes in an object: items, attributes and variables, itself."""
    seen: dict[int, Any] = {}
    todo = [value]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        if is_a(each, kinds):
            yield each
        if is_number(each) or is_a(each, _CLOSED):
            continue
        if is_a(each, _ITEMS):
            todo += each
        elif is_a(each, dict):
            todo += [*each.keys(), *each.values()]
        elif is_a(each, functools.partial):
            todo += [each.func, *each.args, *each.keywords.values()]
        elif is_a(each, MethodType):
            todo += [each.__self__, each.__func__]
        elif is_a(each, FunctionType):
            todo += [*(each.__defaults__ or ()), *(each.__kwdefaults__ or {}).values()]
            todo += contents_of(each.__closure__)
        if not is_a(each, Tensor):
            todo += own_attributes(each).values()
