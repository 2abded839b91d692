"""The node of an elementwise operation, and the plan of its gradients.

A plan belongs to a primitive and a choice of the inputs that need a gradient: what is saved, and
the one kernel that computes all of the gradients in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from numgrad.graph.core import Tensor, wrap
from numgrad.graph.node import FREED, Node, unpack_array
from numgrad.kernels.elementwise import FLOATING, SMALL, Elementwise
from numgrad.kernels.expression import Symbol, literal
from numgrad.ops.primitive import Primitive, restore_tensor

if TYPE_CHECKING:
    from numgrad.ops.elementwise import ElementwisePrimitive

__all__ = ["ElementwiseNode", "GradientPlan"]

Array = np.ndarray[Any, Any]


class ElementwiseNode(Node):
    """The node of an elementwise primitive: one fused kernel for all gradients that are needed."""

    __slots__ = ("metas", "plan")

    primitive: ClassVar[ElementwisePrimitive]
    plan: GradientPlan
    metas: Any  # None where every tensor input has the output's shape and dtype; else see _record

    def run_arrays(self, gradients: Sequence[Any]) -> Sequence[tuple[Any, bool | None] | None]:
        """Run the fused gradient kernel."""
        gradient = gradients[0]
        plan = self.plan
        if gradient is None:
            return plan.nothing
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        if plan.passes_through:
            pairs = plan.pass_through(gradient)
            if self.metas is None:
                return pairs
            return [pair and self._fit(pair, position) for position, pair in enumerate(pairs)]
        shape, dtype, metas = gradient.shape, gradient.dtype, self.metas
        small = metas is None and gradient.size <= SMALL and dtype in FLOATING
        operands = [gradient.ravel() if small else gradient]
        pattern = "a"
        for position, item in zip(plan.positions, saved):  # noqa: B905 - same length, and hot
            if type(item) is tuple:
                array, counter, version = item
                if counter[0] != version:
                    unpack_array(item, (self, 0) if position < 0 else self.edges[position], self)
                if small:
                    pattern += "b" if array.dtype.char == "?" else "a"
                    array = array.ravel()
                operands.append(array)
            else:
                operands.append(item)
                pattern += "p" if type(item) is bool else "s"
        kernel, count = plan.kernel, plan.kernel_outputs
        if small:
            entry = plan.entries.get(pattern + dtype.char)
            if entry is None:
                entry = plan.entries[pattern + dtype.char] = kernel.entry(pattern, dtype, count)
            arrays = [np.empty(shape, dtype)]
            for _ in range(count - 1):
                arrays.append(np.empty(shape, dtype))
            if len(shape) == 1:
                entry(*operands, *arrays)
            else:
                entry(*operands, *[array.ravel() for array in arrays])
            if plan.all_computed:
                return [(array, True) for array in arrays]
        elif metas is None:
            arrays = kernel(shape, operands, [dtype] * count)
        else:
            arrays = self._run_unequal(kernel, gradient, operands)
        if metas is None and plan.all_computed:
            return [(array, True) for array in arrays]
        results: list[tuple[Any, bool | None] | None] = []
        at = 0
        for need, source in zip(plan.mask, plan.sources, strict=True):
            if not need:
                results.append(None)
                continue
            if source is None:
                pair: tuple[Array, bool | None] = (gradient, False)
            else:
                pair = (arrays[at], True)
                at += 1
            results.append(pair if self.metas is None else self._fit(pair, len(results)))
        return results

    def _run_unequal(self, kernel: Any, gradient: Array, operands: list[Any]) -> list[Array]:
        """Run the kernel for operands that were broadcast or cast on the way forward."""
        compute = self.metas[0]
        cast = operands[:1]
        for position, operand in zip(self.plan.positions, operands[1:], strict=True):
            is_input = type(operand) is np.ndarray and position >= 0
            if is_input and operand.dtype != compute and position not in self.primitive.masks:
                operand = operand.astype(compute)
            cast.append(operand)
        # A real input of a complex operation gets the real part of its gradient in _fit.
        wide = compute if compute.kind == "c" else gradient.dtype
        dtypes_out = [wide] * self.plan.kernel_outputs
        arrays: list[Array] = kernel(gradient.shape, cast, dtypes_out)
        return arrays

    def _fit(self, pair: tuple[Array, bool | None], position: int) -> tuple[Array, bool | None]:
        """Return a gradient in its input's shape and dtype."""
        array, _ = pair
        shape, dtype = self.metas[1][position]
        if array.shape == shape and array.dtype == dtype:
            return pair
        tensor = wrap(array)
        if array.shape != shape:
            tensor = Primitive.sum_to_size(tensor, shape)
        if array.dtype != dtype:
            tensor = Primitive.cast(tensor, dtype)
        return (tensor._array, tensor._base is None and tensor._array is not array)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the rules on tensors; under grad mode that records them."""
        gradient = gradients[0]
        plan = self.plan
        if gradient is None:
            return [None] * len(self.edges)
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        environment: dict[str, Any] = {"g": gradient}
        names = self.primitive.inputs
        for position, item in zip(plan.positions, saved, strict=True):
            if type(item) is not tuple:
                environment[names[position]] = item
            elif position < 0:
                environment["y"] = restore_tensor(item, (self, 0), self)
            else:
                environment[names[position]] = restore_tensor(item, self.edges[position])
        results: list[Tensor | None] = []
        for position, need in enumerate(plan.mask):
            if not need:
                results.append(None)
                continue
            rule, parameters = self.primitive.rules[position]  # type: ignore[misc]
            result = rule(*[environment[name] for name in parameters])
            if self.metas is not None:
                shape, dtype = self.metas[1][position]
                if result._array.shape != shape:
                    result = Primitive.sum_to_size(result, shape)
                if result._array.dtype != dtype:
                    result = Primitive.cast(result, dtype)
            results.append(result)
        return results


class GradientPlan:
    """What to save and which kernel to run, for one choice of inputs that need a gradient.

    Attributes
    ----------
    mask : tuple of bool
        Which inputs get a gradient.
    positions : tuple of int
        What is saved, in order: the positions of inputs, and -1 for the output.
    sources : tuple
        For each input None if its gradient is the cotangent itself, else True.
    """

    __slots__ = (
        "all_computed",
        "entries",
        "kernel",
        "kernel_outputs",
        "mask",
        "nothing",
        "ownership",
        "passes_through",
        "positions",
        "sources",
    )

    def __init__(self, primitive: ElementwisePrimitive, needs: int) -> None:
        self.mask = tuple(
            bool((needs >> position) & 1) and primitive.rules[position] is not None
            for position in range(primitive.tensor_count)
        )
        self.nothing = [None] * len(self.mask)
        wanted = [position for position, need in enumerate(self.mask) if need]
        named: list[str] = []
        for position in wanted:
            named += primitive.rules[position][1]  # type: ignore[index]
        self.positions = tuple(
            position for position, name in enumerate(primitive.inputs) if name in named
        ) + ((-1,) if "y" in named else ())
        self.sources = tuple(
            None if not need or primitive.is_identity(position) else True
            for position, need in enumerate(self.mask)
        )
        self.passes_through = not any(self.sources)
        # The only receiver of the cotangent itself may write to it if we might have.
        self.ownership = None if len(wanted) == 1 else False
        self.all_computed = all(self.sources)
        computed = [position for position in wanted if self.sources[position]]
        self.kernel_outputs = len(computed)
        operand_names = ["y" if p < 0 else primitive.inputs[p] for p in self.positions]

        def formula(symbols: dict[str, Symbol]) -> list[Symbol]:
            outputs = []
            for position in computed:
                rule, parameters = primitive.rules[position]  # type: ignore[misc]
                outputs.append(literal(rule(*[symbols[name] for name in parameters])))
            return outputs

        title = f"{primitive.name}, gradient of {', '.join(primitive.inputs[p] for p in computed)}"
        self.kernel = Elementwise(title, ["g", *operand_names], formula)
        self.entries: dict[str, Any] = {}  # by pattern and dtype

    def pass_through(self, gradient: Array) -> list[tuple[Array, bool | None] | None]:
        """Return the cotangent as the gradient of every input that needs one."""
        pair = (gradient, self.ownership)
        return [pair if need else None for need in self.mask]
