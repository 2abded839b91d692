"""Declare elementwise operations: `unary`, `binary`, `elementwise`.

Each makes an `ElementwisePrimitive`, which tells what can be said of one.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.node import Node
from numgrad.graph.tensor import NO_EDGE, Tensor
from numgrad.ops.core.catalogue import RESERVED, check_name, check_names
from numgrad.ops.core.domains import Domain
from numgrad.ops.core.elementwise.formulas import rebound, try_out
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.nodes import PrimitiveNode
from numgrad.ops.core.plan import Rule
from numgrad.ops.core.primitive import Primitive

__all__ = [
    "NotDifferentiable",
    "NotDifferentiablePrimitive",
    "RefusedPrimitive",
    "binary",
    "elementwise",
    "unary",
]

Array = np.ndarray[Any, Any]


def _try_out(
    name: str, inputs: Sequence[str], formula: Any, vjp: Sequence[Rule | None], accepts: str
) -> None:
    """Raise if the formula or a rule of a new operation calls what it may not call.

    Or if they mean different things by one name: in a rule, ``y`` is the output.
    """
    own: set[str] = set()
    if formula is not None:
        try_out(name, "its formula", formula, inputs, accepts)
        own = {*inspect.signature(formula).parameters} & {"g", "y"}
    for rule in vjp:
        if rule is not None:
            named = list(inspect.signature(rule).parameters)
            for each in sorted(own.intersection(named)):
                means = "the output" if each == "y" else "the gradient of the output"
                raise ValueError(
                    f"{name}: the formula calls an operand {each!r}, which in a rule means {means}:"
                    " call it something else"
                )
            if {*named} <= {"g", "y", *inputs}:  # else there are other words for it
                try_out(name, "a rule", rule, named, accepts)


class _NotImplementedNode(Node):
    """The node of an operation that PyTorch records and cannot differentiate."""

    __slots__ = ("function_name", "num_outputs")

    function_name: str
    num_outputs: int
    in_place = False

    def name(self) -> str:
        """Return the node's name, which no formula generates."""
        return "torch::autograd::NotImplemented"

    def run_arrays(self, gradients: Sequence[Any]) -> Any:
        """Raise: there is no derivative."""
        name = self.function_name + "_" * self.in_place
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Any:
        """Raise: there is no derivative."""
        return self.run_arrays(gradients)

    def run_tangents(self, tangents: Sequence[Tensor | None]) -> Any:
        """Raise: there is no derivative."""
        raise NotImplementedError(
            f"Trying to use forward AD with aten::{self.function_name} that does not support it."
        )


_NotImplementedNode.__name__ = _NotImplementedNode.__qualname__ = "NotImplemented"


class _Underivable:
    """What an operation has in the place of rules, if its derivative is not implemented."""

    name: str

    def record(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        parameters: dict[str, Any],
        moving: int = 0,
        held: Sequence[Tensor] = (),
    ) -> None:
        """Attach a node that raises when a gradient comes to it, if an input requires grad."""
        edges = [gradient_edge(each) if isinstance(each, Tensor) else NO_EDGE for each in inputs]
        if not moving and all(edge is NO_EDGE for edge in edges):
            return
        node = _NotImplementedNode(edges)
        node.function_name = getattr(self, "function_name", self.name)
        reached = [output for output in outputs if output._array.dtype.kind in "fc"]
        node.num_outputs = len(reached)
        for number, output in enumerate(reached):
            output._edge = (node, number)


class NotDifferentiable(_Underivable, ElementwisePrimitive):
    """An operation whose result requires grad although its derivative is not implemented."""


class NotDifferentiablePrimitive(_Underivable, Primitive):
    """The same, of one that is not elementwise."""

    def __init__(self, name: str, function_name: str, *declared: Any, **options: Any) -> None:
        super().__init__(name, "NotImplemented", *declared, listed=False, **options)
        self.function_name = function_name


class _RefusingNode(PrimitiveNode):
    """The node of an operation that has a node of its own, and a rule that raises."""

    __slots__ = ()

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Raise, whatever comes."""
        for _, refuse, _ in self.plan.rules:
            refuse()
        return [None] * len(self.targets)


class RefusedPrimitive(Primitive):
    """An operation that PyTorch records by a node of its own, and says it has no derivative of.

    It takes what other primitives do, but for inputs and rules: it has one input.
    """

    node_type = _RefusingNode

    def __init__(self, name: str, node: str, forward: Any, called: str, **options: Any) -> None:
        def refuse() -> None:
            raise NotImplementedError(f"the derivative for '{called}' is not implemented.")

        super().__init__(name, node, forward, ["input"], [refuse], listed=False, **options)


def elementwise(
    name: str,
    inputs: Sequence[str],
    vjp: Sequence[Rule | None],
    domains: Sequence[Domain],
    *,
    formula: Any = None,
    **options: Any,
) -> ElementwisePrimitive:
    """Declare an operation of any operands; see `ElementwisePrimitive`."""
    if RESERVED:  # complete: a declaration of somebody else's
        function_name = options.get("function_name")
        for called in (name, name if function_name is None else function_name):
            check_name(called)
        check_names(name, inputs)
        formula, vjp = rebound(formula), [rebound(rule) for rule in vjp]
        _try_out(name, inputs, formula, vjp, options.get("accepts", "fciu"))
    return ElementwisePrimitive(name, inputs, vjp, domains, formula=formula, **options)


def unary(
    name: str, vjp: Rule | None, domain: Domain, *, kind: str = "float", **options: Any
) -> ElementwisePrimitive:
    """Declare an operation of one operand, ``input``; floating point and complex unless told."""
    options.setdefault("accepts", "fc")
    return elementwise(name, ("input",), (vjp,), (domain,), kind=kind, **options)


def binary(
    name: str,
    vjp: tuple[Rule | None, Rule | None],
    domains: tuple[Domain, Domain],
    **options: Any,
) -> ElementwisePrimitive:
    """Declare an operation of two operands, ``input`` and ``other``."""
    return elementwise(name, ("input", "other"), vjp, domains, **options)
