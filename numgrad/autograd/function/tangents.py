"""Custom Functions in forward mode (the user's `jvp`) and in anomaly mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numgrad.autograd.forward.duals import own
from numgrad.graph.modes.anomaly import note_node
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor, set_array, wrap

__all__ = ["apply_observed"]


def apply_observed(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a Function, remember where its node was made, and hand on tangents.

    Raises
    ------
    NotImplementedError
        If an argument has a tangent, and the Function no ``jvp``.
    RuntimeError
        If ``jvp`` does not do to tangents what ``forward`` does to the arguments' memory.
    """
    dual = modes.dual
    tensors: list[Tensor] = []
    tangents: list[Tensor | None] = []
    if dual is None:
        moving = False
        output, node = function._call(args, kwargs, True, moving)
    else:
        args, kwargs = function._bound(args, kwargs)
        tensors = [argument for argument in args if isinstance(argument, Tensor)]
        tangents = [dual.tangent(tensor) for tensor in tensors]
        moving = not modes.inference and any(tangent is not None for tangent in tangents)
        with dual.hidden():  # the forward pass: its tangents are what jvp says
            output, node = function._call(args, kwargs, True, moving)
    if node is not None and node.is_reached():
        note_node(node)
    if moving:
        versions = [None if tangent is None else tangent._version for tangent in tangents]
        with dual.hidden():
            found = node.run_tangents(tangents)
        if found is None:
            function.jvp(node.ctx, *tangents)  # raises
            return output
        outputs = output if isinstance(output, tuple) else (output,)
        for result, tangent in zip(outputs, found, strict=True):
            if isinstance(result, Tensor) and result._array.dtype.kind in "fc":
                _check_memory(tensors, tangents, versions, result, tangent)
                _put(dual, tensors, tangents, result, tangent)
    return output


def _check_memory(
    tensors: Sequence[Tensor],
    tangents: Sequence[Tensor | None],
    versions: Sequence[int | None],
    result: Tensor,
    tangent: Tensor | None,
) -> None:
    """Raise unless the tangent of an output shares memory as the output does.

    Where an argument was written to, its tangent has to be written to and returned; where a view of
    one is returned, a view of its tangent.
    """
    for argument, given, version in zip(tensors, tangents, versions, strict=True):
        if given is None:
            continue
        if result is argument:
            if given._version == version:
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients "
                    "inplace. If the forward is modifying an input inplace, then the jvp function "
                    "must modify the corresponding gradient inplace."
                )
            if tangent is not given:
                raise RuntimeError(
                    "An inplace custom Function is not returning the forward mode gradients as-is. "
                    "If the forward is modifying an input inplace, then the jvp function must "
                    "modify the gradient inplace and return it as-is."
                )
        elif tangent is not None and result._base is not None:
            if result._base is not (argument if argument._base is None else argument._base):
                continue
            if tangent._base is None:
                raise RuntimeError(
                    "A custom Function's forward is returning a view (or an input as-is) but the "
                    "jvp is not returning a view."
                )
            if tangent._base is not (given if given._base is None else given._base):
                same = "" if given._base is None else "same base as the "
                raise RuntimeError(
                    "A custom Function is returning a view but the jvp is not returning a view of "
                    f"the {same}given grad input."
                )


def _put(
    dual: Any,
    tensors: Sequence[Tensor],
    tangents: Sequence[Tensor | None],
    result: Tensor,
    tangent: Tensor | None,
) -> None:
    """Make what ``jvp`` returned the tangent of an output."""
    if any(result is tensor for tensor in tensors):  # it was written to
        carrier = wrap(result._array[...])
        if tangent is not None:
            dual.put(carrier._array, tangent)
        dual.write(result, carrier)
        return
    if any(result._array is tensor._array for tensor in tensors):
        set_array(result, result._array[...])  # an argument keeps its own tangent
    if tangent is not None:
        with dual.hidden():
            dual.put(result._array, tangent if result._base is not None else own(tangent, tangents))
    elif result._base is not None:
        dual.put(result._array, None)
