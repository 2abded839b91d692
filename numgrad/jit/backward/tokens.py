"""What makes two nodes of a backward pass alike: that their rules record the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from numgrad.graph.backward.accumulate import AccumulateGrad
from numgrad.graph.recorder import Traced, place_of
from numgrad.ops.core.nodes import Call, PrimitiveNode

__all__ = ["is_alike_in_part", "metas_of", "token_of"]

_TOLD_APART = frozenset((type(None), bool, int, str))  # which are equal only if they are the same


def metas_of(nodes: Iterable[Any]) -> dict[Any, Any]:
    """Return the shape and dtype of the first output of each node, None if they are not known.

    Nodes that share no more than a plan do not know theirs, which are those of all their operands.

    Parameters
    ----------
    nodes : iterable of Node
        The oldest first, so that what a node leads to is known when it comes.
    """
    found: dict[Any, Any] = {}
    for node in nodes:
        path: list[Any] = []
        each: Any = node
        meta = None
        while each is not None and each not in found:
            path.append(each)
            meta = each.output_meta(0)
            if meta is not None or not isinstance(each, PrimitiveNode):
                break
            slot = next((k for k, target in enumerate(each.targets) if target is not None), None)
            if slot is None:
                break
            each, number = each.targets[slot], each.numbers[slot]
            meta = each.output_meta(number)
            if meta is not None:
                break
        else:
            meta = found.get(each)
        found.update(dict.fromkeys(path, meta))
    return found


def token_of(node: Any, metas: Mapping[Any, Any], calls: dict[Any, Any] | None = None) -> Any:
    """Return what is equal for nodes that record the same; None if there is no telling.

    In `calls` is kept what was found out about what many nodes share. `metas` are those of
    `metas_of`.
    """
    if not isinstance(node, PrimitiveNode) or node.attached is not None:
        return None
    leaves = tuple([type(target) is AccumulateGrad for target in node.targets])
    if True in leaves and any(
        type(target) is AccumulateGrad and _is_watched(target) for target in node.targets
    ):
        return None
    shared = node.call
    call = None if calls is None else calls.get(shared)
    if call is None:
        call = _meaning_of_call(shared)
        if calls is not None:
            calls[shared] = call
    saved = _meaning_of_saved(node)
    if saved is None or call is None:
        return None
    return type(node), call, saved, leaves, metas.get(node)


def _is_watched(leaf: Any) -> bool:
    """Whether somebody sees when a gradient comes to a leaf."""
    variable = leaf.variable
    hooks = variable._post_accumulate_hooks
    return leaf.attached is not None or hooks is not None or variable._grad is not None


def _meaning_of_call(call: Any) -> Any:
    if type(call) is not Call:
        return id(call)
    parameters = _meanings([*call.parameters, *call.parameters.values()])
    if parameters is None:
        return None
    lies = [
        (each.place.shape, each.place.strides) if type(each) is Traced else each
        for each in call.lies
    ]
    return id(call.plan), parameters, call.shapes, call.output_metas, tuple(lies)


def _meaning_of_saved(node: Any) -> Any:
    saved = node.saved
    if not isinstance(saved, tuple):
        return None
    found: list[Any] = []
    for k in range(0, len(saved), 3):
        array, counter, version = saved[k : k + 3]
        if counter is None:
            meaning = _meanings([array])
            if meaning is None:
                return None
            found.append(meaning)
        elif type(array) in (Traced, np.ndarray) and counter[0] == version:
            place = place_of(array)
            found.append((place.shape, place.strides, place.dtype))
        else:
            return None
    return tuple(found)


def _meanings(values: Iterable[Any]) -> tuple[Any, ...] | None:
    """Return what is equal for parameters that are the same; None if there is no telling."""
    found: list[Any] = []
    for value in values:
        if type(value) in _TOLD_APART:
            found.append((type(value), value))
        elif isinstance(value, (bool, int, float, complex, str, np.dtype)):
            found.append((type(value), repr(value)))
        elif type(value) in (tuple, list):
            inner = _meanings(value)
            if inner is None:
                return None
            found.append((type(value), inner))
        else:
            return None
    return tuple(found)


def is_alike_in_part(node: Any, like: Any, metas: Mapping[Any, Any]) -> bool:
    """Whether a node records a part of what another one does."""
    token = token_of(node, metas)
    if token is None or metas.get(node) != metas.get(like):
        return False
    if node.call is like.call or token == token_of(like, metas):
        return True
    own, other = node.call, like.call
    if (type(own) is Call) != (type(other) is Call):
        return False
    if type(own) is Call:
        facts = [_meaning_of_call(each)[1:] for each in (own, other)]
        if facts[0] != facts[1]:
            return False
    rules = {position for position, *_ in like.plan.rules}
    if not {position for position, *_ in node.plan.rules} <= rules:
        return False
    if any(len(each.saved) != 3 * len(each.plan.saved) for each in (node, like)):
        return False
    saved = dict(zip(like.plan.names, _meaning_of_saved(like), strict=True))
    return all(
        saved.get(name, meaning) == meaning
        for name, meaning in zip(node.plan.names, _meaning_of_saved(node), strict=True)
    )
