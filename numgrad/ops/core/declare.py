"""Declare elementwise operations: `unary`, `binary`, `elementwise`.

`unary`, `binary` and `elementwise` make an `ElementwisePrimitive` with more keywords:

`kernel_name`
    What PyTorch calls its kernel; it stands in the error for a dtype that has none.
`refuses`
    For dtype kinds that PyTorch refuses in other words, the error to raise.
`closer`
    Of an operation of one operand, a rule that names the input beside the output, and is the more
    accurate for it; see `numgrad.ops.core.spare`.
`gradients_lie`
    For operands whose gradient PyTorch computes in another order than the rule, a function of what
    that names which has that order, and a number where gradients lie row by row: how they lie in
    memory follows from it.
`listed`
    Whether it is an operation of the catalogue, and not a part of one.
`example`
    A line of code and, below it, what it prints; it ends the docstring.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.accumulate import gradient_edge
from numgrad.graph.node import Node
from numgrad.graph.tensor import NO_EDGE, Tensor
from numgrad.ops.core.domains import Domain
from numgrad.ops.core.elementwise import ElementwisePrimitive
from numgrad.ops.core.formulas import rebound, try_out
from numgrad.ops.core.primitive import RESERVED, Rule, check_name, check_names

__all__ = [
    "Declared",
    "NotDifferentiable",
    "binary",
    "elementwise",
    "unary",
]

Array = np.ndarray[Any, Any]


class Declared(ElementwisePrimitive):
    """An elementwise operation that refuses dtypes in PyTorch's words."""

    def __init__(
        self,
        name: str,
        inputs: Sequence[str],
        vjp: Sequence[Rule | None],
        domains: Sequence[Domain],
        *,
        doc: str,
        formula: Any = None,
        kind: str = "same",
        accepts: str = "fciu",
        node: str | None = None,
        masks: Sequence[str] = (),
        numbers: Sequence[str] = (),
        function_name: str | None = None,
        deciding: Callable[[list[Array]], list[Array]] | None = None,
        kernel_name: str | None = None,
        refuses: Mapping[str, Exception] | None = None,
        check: Callable[..., None] | None = None,
        example: str | None = None,
        closer: Rule | None = None,
        gradients_lie: Mapping[str, Rule] | None = None,
        listed: bool = True,
    ) -> None:
        if RESERVED:  # complete: a declaration of somebody else's
            for called in (name, name if function_name is None else function_name):
                check_name(called)
            check_names(name, inputs)
            formula, vjp = rebound(formula), [rebound(rule) for rule in vjp]
            _try_out(name, inputs, formula, vjp, accepts)
        if example is not None:
            doc += f"\n\n>>> import numgrad as ng\n>>> {example}\n"
        super().__init__(
            name,
            inputs,
            formula,
            vjp,
            node=node or f"{name.title().replace('_', '')}Backward0",
            kind=kind,
            accepts=accepts,
            domains=domains,
            doc=doc,
            masks=masks,
            numbers=numbers,
            function_name=function_name,
            deciding=deciding,
            closer=closer,
            gradients_lie=gradients_lie,
            listed=listed,
        )
        self.kernel_name = kernel_name or f"{self.function_name}_cpu"
        self.refuses = dict(refuses or {})
        self.check = check

    def check_dtype(self, dtype: dtypes.dtype) -> None:
        """Raise PyTorch's error if the operation does not compute with a dtype."""
        kind = dtype.numpy.kind
        if kind in self.accepts:
            return
        error = self.refuses.get(kind)
        if error is not None:
            raise type(error)(*error.args)
        raise NotImplementedError(
            f"\"{self.kernel_name}\" not implemented for '{dtype.scalar_name}'"
        )

    def _check_operands(self, operands: Sequence[Any]) -> list[Tensor]:
        """Return the operands that are tensors; raise for those that it does not take."""
        if self.check is not None:
            self.check(*operands)
        return super()._check_operands(operands)

    def _dtypes(self, common: dtypes.dtype) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """Return the NumPy dtypes of the computation and of the result."""
        if self.kind == "float" and common.category < dtypes.FLOATING:
            common = dtypes.default_dtype()
        self.check_dtype(common)
        return super()._dtypes(common)


def _try_out(
    name: str, inputs: Sequence[str], formula: Any, vjp: Sequence[Rule | None], accepts: str
) -> None:
    """Raise if the formula or a rule of a new operation calls what it may not call."""
    if formula is not None:
        try_out(name, "its formula", formula, inputs, accepts)
    for rule in vjp:
        if rule is not None:
            named = list(inspect.signature(rule).parameters)
            if {*named} <= {"g", "y", *inputs}:  # else there are other words for it
                try_out(name, "a rule", rule, named, accepts)


class _NotImplementedNode(Node):
    """The node of an operation that PyTorch records and cannot differentiate."""

    __slots__ = ("function_name",)

    function_name: str

    def name(self) -> str:
        """Return the node's name, which no formula generates."""
        return "torch::autograd::NotImplemented"

    def run_arrays(self, gradients: Sequence[Any]) -> Any:
        """Raise: there is no derivative."""
        raise RuntimeError(f"derivative for aten::{self.function_name} is not implemented")

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Any:
        """Raise: there is no derivative."""
        return self.run_arrays(gradients)

    def run_tangents(self, tangents: Sequence[Tensor | None]) -> Any:
        """Raise: there is no derivative."""
        raise NotImplementedError(
            f"Trying to use forward AD with aten::{self.function_name} that does not support it."
        )


_NotImplementedNode.__name__ = _NotImplementedNode.__qualname__ = "NotImplemented"


class NotDifferentiable(Declared):
    """An operation whose result requires grad although its derivative is not implemented."""

    def _record(
        self,
        tensor: Tensor,
        operands: Sequence[Any],
        compute: np.dtype[Any],
        moving: int = 0,
    ) -> None:
        """Attach a node that raises when a gradient comes to it."""
        edges = [gradient_edge(o) if isinstance(o, Tensor) else NO_EDGE for o in operands]
        node = _NotImplementedNode(edges)
        node.function_name = self.function_name
        tensor._edge = (node, 0)

    def _attach(
        self, tensor: Tensor, operands: Sequence[Any], compute: np.dtype[Any], kinds: str
    ) -> None:
        """Do the same where no operand was broadcast or cast."""
        self._record(tensor, operands, compute)


def unary(
    name: str, vjp: Rule | None, domain: Domain, *, doc: str, kind: str = "float", **options: Any
) -> Declared:
    """Declare an operation of one operand, ``input``; floating point and complex unless told."""
    options.setdefault("accepts", "fc")
    return Declared(name, ("input",), (vjp,), (domain,), doc=doc, kind=kind, **options)


def binary(
    name: str,
    vjp: tuple[Rule | None, Rule | None],
    domains: tuple[Domain, Domain],
    *,
    doc: str,
    **options: Any,
) -> Declared:
    """Declare an operation of two operands, ``input`` and ``other``."""
    return Declared(name, ("input", "other"), vjp, domains, doc=doc, **options)


def elementwise(
    name: str,
    inputs: Sequence[str],
    vjp: Sequence[Rule | None],
    domains: Sequence[Domain],
    *,
    doc: str,
    **options: Any,
) -> Declared:
    """Declare an operation of any operands; see `Declared`."""
    return Declared(name, inputs, vjp, domains, doc=doc, **options)
