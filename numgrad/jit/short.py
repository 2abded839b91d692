"""The short way of a compiled function: straight-line Python for calls that need no gradient.

Which trace fits is found out from a key that is quickly made; then one emitted function takes the
arguments' arrays, runs the program, and puts the results together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad import dtypes
from numgrad.graph.core import NO_EDGE, Tensor
from numgrad.graph.modes import modes
from numgrad.jit.compiled import Compiled
from numgrad.pytree import LEAF, TreeSpec, unflatten

__all__ = ["short_call", "short_key"]

_ndarray = np.ndarray


def short_key(args: Sequence[Any]) -> Any:
    """Return what tells calls of one trace from others; None if a call goes the long way."""
    key: list[Any] = [modes.grad, dtypes.default_dtype()]
    for argument in args:
        kind = type(argument)
        if kind is _ndarray:
            key += (argument.dtype, argument.shape)
        elif kind is Tensor and argument._edge is NO_EDGE and argument._base is None:
            array = argument._array
            key += (Tensor, array.dtype, array.shape)
        elif kind is float:
            key.append(float)
        else:
            return None
    return tuple(key)


def short_call(compiled: Compiled, args: Sequence[Any]) -> Callable[[Sequence[Any]], Any] | None:
    """Return a function of the arguments that runs a trace; None where that takes more.

    Parameters
    ----------
    args : sequence
        Arguments like those that it is for, each an array, a tensor or a float.
    """
    if compiled.differentiable or any(output.kind == "argument" for output in compiled.outputs):
        return None
    names = [f"a{k}" for k in range(len(args))]
    arrays = [_as_array(name, argument) for name, argument in zip(names, args, strict=True)]
    lines = ["def call(args):"]
    if names:
        lines.append(f"    {', '.join(names)}, = args")
    lines.append(f"    results = program([{', '.join(arrays)}])")
    namespace: dict[str, Any] = {
        "program": compiled.program,
        "asarray": np.asarray,
        "new": object.__new__,
        "Tensor": Tensor,
        "unflatten": unflatten,
        "spec": compiled.spec,
    }
    leaves = []
    for k, (kind, which, _) in enumerate(compiled.outputs):
        leaves.append(f"r{k}")
        if kind == "computed":
            lines += [
                f"    r{k} = new(Tensor)",
                f"    r{k}._array = results[{which}]",
                f"    r{k}._counter = [0]",
            ]
        else:
            namespace[f"r{k}"] = which
    lines.append(f"    return {_structure(compiled.spec, leaves)}")
    exec("\n".join(lines), namespace)
    call: Callable[[Sequence[Any]], Any] = namespace["call"]
    return call


def _as_array(name: str, argument: Any) -> str:
    if isinstance(argument, Tensor):
        return f"{name}._array"
    return name if isinstance(argument, np.ndarray) else f"asarray({name})"


def _structure(spec: TreeSpec, leaves: Sequence[str]) -> str:
    """Return the expression that makes the result of its leaves."""
    if spec == LEAF:
        return leaves[0]
    if spec.type in (tuple, list) and all(child == LEAF for child in spec.children):
        inside = ", ".join(leaves)
        if spec.type is list:
            return f"[{inside}]"
        return f"({inside},)" if leaves else "()"
    return f"unflatten(spec, [{', '.join(leaves)}])"
