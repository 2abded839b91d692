"""Custom Functions in functions that `numgrad.func.vmap` maps: the user's `vmap`.

It takes the place of the forward pass, and gets the tensors outside. With ``generate_vmap_rule``
it is generated: it applies another Function, outside, whose methods run the user's on tensors
inside. So the user's backward pass counts outside, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numgrad.base import pytree
from numgrad.batching.batcher import Batcher
from numgrad.batching.memory import Part
from numgrad.batching.trees import spread
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor

__all__ = ["Inside", "VmapInfo", "check_mapped", "forward_of"]

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
    """Return what computes the forward pass: of a batch, the `vmap`, the user's or generated."""
    batcher = modes.trace
    if not isinstance(batcher, Batcher):
        forward: Callable[..., Any] = function.forward
        return forward
    rule = generated_rule(function) if function.generate_vmap_rule else function.vmap

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
            found = rule(info, pytree.unflatten(spec, dims), *pytree.unflatten(spec, given))
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


# --- rules that are generated ---------------------------------------------------------------------


def generated_rule(function: Any) -> Callable[..., Any]:
    """Return the `vmap` that is generated for a Function."""

    def rule(info: VmapInfo, in_dims: Any, *args: Any) -> tuple[Any, Any]:
        leaves, spec = pytree.flatten(args)
        dims = spread(in_dims, spec)
        batched = [dim == 0 for dim in dims or ()]
        batch = Batch(function, info, spec, batched)
        output = function._of_batch(batch).apply(*pytree.unflatten(spec, leaves))
        return output, pytree.map_tree(lambda each: 0 if isinstance(each, Tensor) else None, output)

    return rule


class Batch:
    """Runs the methods of a Function inside, for those of another one outside.

    Parameters
    ----------
    function : type
    info : VmapInfo
    spec : TreeSpec
        The structure of the arguments.
    batched : list of bool
        For each leaf of that whether it is a batch.
    """

    def __init__(
        self, function: Any, info: VmapInfo, spec: pytree.TreeSpec, batched: list[bool]
    ) -> None:
        self.function = function
        self.batcher = Batcher(*info)
        self._spec = spec
        self._batched = batched

    def _inside(self, args: tuple[Any, ...]) -> Any:
        leaves = [
            self.batcher.inside(leaf, batched) if isinstance(leaf, Tensor) else leaf
            for leaf, batched in zip(pytree.leaves(args), self._batched, strict=True)
        ]
        return pytree.unflatten(self._spec, leaves)

    def _every(self, tree: Any) -> Any:
        """Return results as batches."""
        leaves, spec = pytree.flatten(tree)
        parts = [self.batcher.part(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        with self.batcher.outside():
            size = self.batcher.size
            found = [part.every(size) if isinstance(part, Part) else part for part in parts]
        return pytree.unflatten(spec, found)

    def _examples(self, tree: Any) -> Any:
        return pytree.map_tree(
            lambda leaf: self.batcher.inside(leaf, True) if isinstance(leaf, Tensor) else leaf, tree
        )

    def forward(self, *args: Any) -> Any:
        """Run the forward pass."""
        with self.batcher.open():
            return self._every(self.function.forward(*self._inside(args)))

    def setup_context(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what the user saves."""
        with self.batcher.open():
            ctx.inside = Inside(ctx, self.batcher)
            self.function.setup_context(ctx.inside, self._inside(inputs), self._examples(output))

    def backward(self, ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        """Run the backward pass; the gradients of what is one for all examples are added up."""
        with self.batcher.open():
            found = self.function._backward_rule()(ctx.inside, *self._examples(gradients))
            found = self._every(found if isinstance(found, tuple) else (found,))
        return tuple(
            [
                whole if batched or whole is None else whole.sum(0)
                for whole, batched in zip(found, self._arguments(), strict=True)
            ]
        )

    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        """Run the user's `jvp`."""
        with self.batcher.open():
            inside = [
                None if each is None else self.batcher.inside(each, batched)
                for each, batched in zip(tangents, self._arguments(), strict=True)
            ]
            return self._every(self.function.jvp(ctx.inside, *inside))

    def _arguments(self) -> list[bool]:
        """Return for each argument whether it is a batch."""
        rest = iter(self._batched)
        each = [[next(rest) for _ in range(child.num_leaves)] for child in self._spec.children]
        return [True in own for own in each]


class Inside:
    """A context as the methods of a mapped Function see it: tensors in it are those inside."""

    def __init__(self, context: Any, batcher: Batcher) -> None:
        self.__dict__.update(_context=context, _batcher=batcher, _batched=())

    def save_for_backward(self, *tensors: Any) -> None:
        """Save what the tensors are outside."""
        parts = [None if each is None else self._batcher.part(each) for each in tensors]
        self.__dict__["_batched"] = [part is not None and part.batched for part in parts]
        self._context.save_for_backward(*[None if part is None else part.tensor for part in parts])

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, inside."""
        with self._batcher.outside():
            saved = self._context.saved_tensors
        return tuple(
            [
                None if each is None else self._batcher.inside(each, batched)
                for each, batched in zip(saved, self._batched, strict=True)
            ]
        )

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Mark what the tensors are outside."""
        found = [self._batcher.part(each).tensor for each in tensors]
        self._context.mark_non_differentiable(*found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._context, name, value)
