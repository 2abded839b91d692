"""ElementwiseNode: runs the one fused kernel of its plan for all gradients that are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS, RECYCLED_BYTES
from numgrad.graph.modes.state import modes
from numgrad.graph.node import FREED, OutputMeta
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Tensor, wrap
from numgrad.kernels.move.memory_order import as_dtype
from numgrad.kernels.pointwise.elementwise import FLOATING
from numgrad.ops.calls.rule_programs import Gradients
from numgrad.ops.calls.steps import step_of
from numgrad.ops.core.elementwise.gradient_kernel import empty_in_order, orders_of
from numgrad.ops.core.elementwise.gradient_plan import gradients_lie
from numgrad.ops.core.elementwise.spare import spare_of
from numgrad.ops.core.nodes import PrimitiveNode, fitted
from numgrad.ops.core.places import relaid
from numgrad.ops.core.plan import Rule

__all__ = ["ElementwiseNode"]

Array = np.ndarray[Any, Any]


class ElementwiseNode(PrimitiveNode):
    """The node of an elementwise primitive: one fused kernel for all gradients that are needed."""

    __slots__ = ()

    # Where every tensor input has the output's shape and dtype, `call` is the plan, and there are
    # no `shapes`; else it is a `Call`, with the dtype of the computation among its parameters.

    def run_rules(self, gradients: Sequence[Any]) -> Gradients:
        """Run the kernel by what is in the node, and nothing that is remembered of others."""
        if self.shapes is not None:
            return super().run_rules(gradients)
        found: Gradients = self.plan.run(self, gradients)
        return found

    def rules_on(
        self, gradients: Sequence[Any]
    ) -> tuple[Sequence[Tensor | None], Sequence[bool | None]]:
        """Run the kernel for operands that were broadcast or cast, and fit what it gives."""
        gradient, plan = gradients[0], self.plan
        if gradient is None:
            nothing: tuple[Any, Any] = plan.nothing
            return nothing
        if self._is_narrow(gradient):
            return super().rules_on(gradients)
        arrays = self._run_unequal(gradient) if plan.kernel_outputs else []
        if arrays and modes.steps is not None:
            operands: list[Any] = [wrap(gradient)]
            operands += [
                wrap(saved) if type(saved) is np.ndarray else f"a{index}"
                for index, saved in enumerate(plan.values(self.saved))
            ]
            kernel = self._kernel_of(gradient, remembered=True)
            outputs = [wrap(array) for array in arrays]
            step = step_of(None, operands, {}, outputs, kernel, True)
            modes.steps.steps.append(step)
        placed, owned = plan.place(gradient, arrays)
        tensors = [None if array is None else wrap(array) for array in placed]
        return self._fit(tensors, owned)

    def run_any_size(self, gradient: Array) -> Gradients:
        """Run the kernel where no operand was broadcast or cast on the way forward."""
        plan, saved, dtype = self.plan, self.saved, gradient.dtype
        if saved is None:
            raise RuntimeError(FREED)
        kernel, beside = plan.kernel_with(saved, dtype)
        entries = plan.closer_entries if beside else plan.entries
        if gradient.size <= FEW_ELEMENTS and dtype in FLOATING and dtype not in entries:
            pattern = plan.pattern + "a" * len(beside)
            entries[dtype] = kernel.entry(pattern, dtype, plan.kernel_outputs)
            result: Gradients = plan.run(self, (gradient,))
            return result
        operands = [gradient, *plan.values(saved), *beside]
        if dtype in FLOATING and gradient.nbytes < RECYCLED_BYTES:
            arrays = plan.run_flat(kernel, operands)
            if arrays is not None:
                return plan.place(gradient, arrays)
        arrays = kernel(gradient.shape, operands, [dtype] * plan.kernel_outputs)
        return plan.place(gradient, arrays)

    def _kernel_of(
        self, gradient: Array, *, remembered: bool = False
    ) -> Callable[..., list[Array]]:
        """Return what computes the gradients of operands that were broadcast or cast.

        It takes the cotangent, which lies as this one, and what was saved; if it is `remembered`,
        also of other nodes.
        """
        plan, metas, compute = self.plan, self.shapes, self.parameters["compute"]
        casts = [
            kind != "output" and position not in self.primitive.masks
            for kind, position in plan.saved
        ]
        # A real input of a complex operation gets the real part of its gradient in _fit.
        wide = compute if compute.kind == "c" else gradient.dtype
        shapes = None
        if gradient.size > FEW_ELEMENTS:  # sums of few numbers are not worth a kernel of their own
            shapes = tuple([meta[0] for meta, s in zip(metas, plan.sources, strict=True) if s])
            if all(shape == gradient.shape for shape in shapes):
                shapes = None
        outputs = [wide] * plan.kernel_outputs
        kernel, beside = plan.kernel_with(self.saved, wide)
        if remembered and shapes is None and not beside:
            values = [gradient, *plan.values(self.saved)]
            dtypes = [gradient.dtype] + [
                compute if cast or type(value) is not np.ndarray else value.dtype
                for value, cast in zip(values[1:], casts, strict=True)
            ]
            quick = kernel.quick(values, dtypes, outputs)
            if quick is not None:
                return quick

        def run(gradient: Array, *saved: Any) -> list[Array]:
            operands = [gradient]
            for operand, cast in zip(saved, casts, strict=True):
                if cast and type(operand) is np.ndarray and operand.dtype != compute:
                    operand = as_dtype(operand, compute)
                operands.append(operand)
            operands += [each.astype(compute, copy=False) for each in beside]
            arrays: list[Array] = kernel(gradient.shape, operands, outputs, shapes=shapes)
            return arrays

        return run

    def _is_narrow(self, gradient: Array) -> bool:
        saved, compute = self.saved, self.parameters["compute"]
        return saved is not None and self.plan.is_narrow(gradient, saved, compute)

    def _run_unequal(self, gradient: Array) -> list[Array]:
        """Run the kernel for operands that were broadcast or cast on the way forward."""
        if self.saved is None:
            raise RuntimeError(FREED)
        self.raise_if_modified()
        return self._kernel_of(gradient)(gradient, *self.plan.values(self.saved))

    def _fit(
        self, tensors: Sequence[Tensor | None], owned: Sequence[bool | None]
    ) -> tuple[Sequence[Tensor | None], Sequence[bool | None]]:
        """Return gradients in their inputs' shapes and dtypes."""
        results, results_owned = list(tensors), list(owned)
        for position, tensor in enumerate(tensors):
            if tensor is None:
                continue
            array = tensor._array
            tensor = fitted(tensor, *self.shapes[position])
            if tensor._array is not array:
                results[position] = tensor
                results_owned[position] = tensor._base is None
        return results, results_owned

    def output_meta(self, number: int) -> OutputMeta | None:
        """Return the shape and the dtype of the output: without `shapes`, those of the inputs."""
        node: Any = self
        while isinstance(node, ElementwiseNode) and node.shapes is None:
            position = next(k for k, target in enumerate(node.targets) if target is not None)
            node, number = node.edge(position)
        found: OutputMeta | None = (
            node.output_metas[number]
            if isinstance(node, ElementwiseNode)
            else node.output_meta(number)
        )
        return found

    def _rules(self, environment: dict[str, Any]) -> Iterable[tuple[int, Rule, tuple[str, ...]]]:
        """Return the rules to run: the more accurate one, if the operand that it takes is there."""
        plan, closer = self.plan, self.primitive.closer
        if closer is not None:
            spare = spare_of(self.saved, len(plan.saved))
            if spare is not None and spare.dtype == environment["g"]._array.dtype:
                environment["input"] = wrap(spare)
                return [(position, *closer) for position, *_ in plan.rules]
        return super()._rules(environment)

    def _laid(self, result: Tensor, position: int, environment: dict[str, Any]) -> Tensor:
        """Return what a rule gave, laid out as the gradient of that input is."""
        array = result._array
        known = {
            name: place_of(value._array) if isinstance(value, Tensor) else value
            for name, value in environment.items()
        }
        (order,) = orders_of(array.shape, known, gradients_lie(self.primitive, [position]))
        memory = empty_in_order(array.shape, order, array.dtype)
        sources = [v._array for v in environment.values() if isinstance(v, Tensor)]
        return relaid(result, memory, sources)
