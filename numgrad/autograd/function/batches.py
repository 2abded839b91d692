"""Custom Functions in functions that `numgrad.func.vmap` maps: the user's `vmap`.

Without one, and with ``generate_vmap_rule``, the forward and the backward pass run on tensors
inside as any other code does. With one, it takes the place of the forward pass, and gets the
tensors outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numgrad.base import pytree
from numgrad.batching.batcher import Batcher
from numgrad.batching.trees import spread
from numgrad.graph.modes import modes
from numgrad.graph.tensor import Tensor

__all__ = ["VmapInfo", "check_mapped", "forward_of"]

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What the `vmap` of a Function is told of the batch."""

    batch_size: int
    randomness: str


def check_mapped(function: Any, no_setup: Any, no_vmap: Any) -> None:
    """Raise, in PyTorch's words, for a Function that can't be in a mapped function.

    Parameters
    ----------
    function : type
        The Function.
    no_setup, no_vmap : callable
        The methods of a Function that has none.
    """
    if not isinstance(modes.trace, Batcher):
        return
    name = function.__name__
    if function.setup_context is no_setup:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, "
            f"jacrev, ...), it must override the setup_context staticmethod. {_MORE}"
        )
    has_vmap = function.vmap is not no_vmap
    if function.generate_vmap_rule and has_vmap:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an "
            "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            f"overridden vmap staticmethod to avoid ambiguity. {_MORE}"
        )
    if not function.generate_vmap_rule and not has_vmap:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override "
            f"and implement the vmap staticmethod or set generate_vmap_rule=True. {_MORE}"
        )


def forward_of(function: Any) -> Callable[..., Any]:
    """Return what computes the forward pass: of a batch, the user's `vmap`."""
    batcher = modes.trace
    if not isinstance(batcher, Batcher) or function.generate_vmap_rule:
        forward: Callable[..., Any] = function.forward
        return forward

    def forward_of_batch(*args: Any) -> Any:
        leaves, spec = pytree.flatten(args)
        parts = [batcher.part(leaf) if isinstance(leaf, Tensor) else None for leaf in leaves]
        if not any(part is not None and part.batched for part in parts):
            return function.forward(*args)
        dims = [0 if part is not None and part.batched else None for part in parts]
        given = [
            leaf if part is None else part.tensor for leaf, part in zip(leaves, parts, strict=True)
        ]
        info = VmapInfo(batcher.size, batcher.randomness)
        with batcher.outside():
            found = function.vmap(
                info, pytree.unflatten(spec, dims), *pytree.unflatten(spec, given)
            )
            outputs, out_dims, output_spec = _read(found)
            outputs = [
                each.movedim(dim, 0) if dim and isinstance(each, Tensor) else each
                for each, dim in zip(outputs, out_dims, strict=True)
            ]
        inside = [
            batcher.inside(each, dim is not None) if isinstance(each, Tensor) else each
            for each, dim in zip(outputs, out_dims, strict=True)
        ]
        return pytree.unflatten(output_spec, inside)

    return forward_of_batch


def _read(found: Any) -> tuple[list[Any], list[Any], pytree.TreeSpec]:
    """Return the outputs of a `vmap`, the dim of each, and their structure."""
    if not isinstance(found, tuple) or len(found) != 2:
        given = f"{len(found)} returns" if isinstance(found, tuple) else f"a {type(found)}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with "
            f"pytree structure compatible with the output. Got {given} instead"
        )
    output, out_dims = found
    outputs, spec = pytree.flatten(output)
    dims = spread(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {pytree.flatten(out_dims)[1]!r} but output has structure "
            f"{spec!r}. {_MORE}"
        )
    return outputs, dims, spec
