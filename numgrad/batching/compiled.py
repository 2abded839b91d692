"""Compiled functions that are called in a mapped one: compiled for the whole batch.

Of a compiled function another one is made, of tensors outside, whose first dims are the examples':
it runs the function under a `Batcher` of its own, and is traced and compiled as any other. What the
results depend on inside is a node, whose backward is made of the function's backward likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numgrad.base.pytree import TreeSpec, flatten, unflatten
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.modes.state import modes
from numgrad.graph.node import Node, node_type
from numgrad.graph.recorder import ForeignTensor
from numgrad.graph.tensor import Tensor, wrap

__all__ = ["call_compiled"]


class _Found(NamedTuple):
    """What a function gave for a batch, beside the tensors.

    Attributes
    ----------
    kinds : list
        Of each leaf of the results: which of the arguments' leaves it is, whether it is batched, or
        None for what is no tensor.
    moving : list of bool
        Which of the leaves depend on a moving argument.
    spec : TreeSpec
    unrecorded : bool
        Whether the function switches recording off.
    """

    kinds: Sequence[Any]
    moving: Sequence[bool]
    spec: TreeSpec
    unrecorded: bool


def call_compiled(batcher: Any, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a compiled function for all examples at once.

    One that reads tensors inside which are no arguments of it runs as it is. So do those that may
    draw random numbers: gradients go by the numbers that were drawn, which only the run itself has.
    And so do all where a function is traced outside, which is compiled as a whole.
    """
    if batcher.randomness != "error" or not batcher.has_numbers:
        return jitted.function(*args, **kwargs)
    try:
        return _call(batcher, jitted, args, kwargs)
    except ForeignTensor:
        return jitted.function(*args, **kwargs)


def _call(batcher: Any, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    leaves, spec, static = jitted.leaves_of(args, kwargs)
    leaves = batcher.operands(leaves)
    parts = [batcher.part(leaf) if isinstance(leaf, Tensor) else None for leaf in leaves]
    moving = tuple(
        [
            k
            for k, leaf in enumerate(leaves)
            if modes.grad and parts[k] is not None and leaf.requires_grad
        ]
    )
    batched = tuple([part is not None and part.batched for part in parts])
    key = spec, batched, moving, static, batcher.randomness
    whole = jitted.of_batches.get(key)
    if whole is None:
        function = _of_batch(batcher, jitted.function, spec, batched, moving)
        whole = jitted.of_batches[key] = jitted.remade(function, static)
    given = [
        leaf if part is None else part.tensor for leaf, part in zip(leaves, parts, strict=True)
    ]
    with batcher.outside():
        tensors, *rest = whole(*given)
    found = _Found(*rest)
    if found.unrecorded and modes.unrecorded is not None:  # what it computes has tangents
        return jitted.function(*args, **kwargs)
    return _inside(batcher, jitted, leaves, spec, moving, tensors, found)


def _of_batch(
    batcher: Any,
    function: Callable[..., Any],
    spec: TreeSpec,
    batched: Sequence[bool],
    moving: Sequence[int],
) -> Callable[..., Any]:
    """Return what a function is for a batch: of the leaves of its arguments, outside."""
    kind, randomness = type(batcher), batcher.randomness
    first = batched.index(True) if True in batched else None

    def of_batch(*leaves: Any) -> tuple[Any, ...]:
        own = kind(1 if first is None else len(leaves[first]), randomness)
        with own.open():
            inside = [
                own.inside(leaf, each) if isinstance(leaf, Tensor) else leaf
                for leaf, each in zip(leaves, batched, strict=True)
            ]
            for k in moving:
                inside[k]._edge = None
            args, kwargs = unflatten(spec, inside)
            found, result_spec = flatten(function(*args, **kwargs))
            numbers = {id(leaf): k for k, leaf in enumerate(inside) if isinstance(leaf, Tensor)}
            tensors: list[Any] = []
            kinds: list[Any] = []
            for leaf in found:
                if not isinstance(leaf, Tensor):
                    tensors.append(leaf)
                    kinds.append(None)
                elif id(leaf) in numbers:
                    tensors.append(None)
                    kinds.append(numbers[id(leaf)])
                else:
                    part = own.part(leaf)
                    tensors.append(part.tensor)
                    kinds.append(part.batched)
            moved = [isinstance(leaf, Tensor) and leaf.requires_grad for leaf in found]
        return tensors, kinds, moved, result_spec, own.unrecorded

    return of_batch


def _inside(
    batcher: Any,
    jitted: Any,
    leaves: Sequence[Any],
    spec: TreeSpec,
    moving: Sequence[int],
    tensors: Sequence[Any],
    found: _Found,
) -> Any:
    """Return the results inside, which depend there on what the moving leaves depend on."""
    results: list[Any] = []
    computed: list[Tensor] = []
    for tensor, kind, moves in zip(tensors, found.kinds, found.moving, strict=True):
        if kind is None:
            results.append(tensor)
        elif type(kind) is bool:
            results.append(batcher.inside(tensor, kind))
            if moves:
                computed.append(results[-1])
        else:
            results.append(leaves[kind])
    if computed:
        edges = [gradient_edge(leaves[k]) for k in moving]
        node = node_type("CompiledFunctionBackward", _MappedNode, num_outputs=len(computed))(edges)
        node.backward = jitted.backward_of(leaves, spec, moving)
        node.given = leaves
        node.output_metas = [(each._array.shape, each._array.dtype) for each in computed]
        for number, each in enumerate(computed):
            each._edge = (node, number)
    return unflatten(found.spec, results)


class _MappedNode(Node):
    """The node of a compiled function that was called for a batch."""

    __slots__ = ("backward", "given", "output_metas")

    backward: Any  # of the leaves that are traced and the cotangents, compiled
    given: Sequence[Any]  # the leaves of the arguments
    output_metas: list[tuple[tuple[int, ...], Any]]

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Run the compiled backward function."""
        tensors = [None if gradient is None else wrap(gradient) for gradient in gradients]
        arrays = [None if found is None else found._array for found in self.run_tensors(tensors)]
        return arrays, [False] * len(arrays)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the compiled backward function on tensors."""
        if all(gradient is None for gradient in gradients):
            return [None] * len(self.targets)
        compiled, traced = self.backward
        found = compiled(*[self.given[k] for k in traced], *gradients)
        return list(found[: len(self.targets)])
