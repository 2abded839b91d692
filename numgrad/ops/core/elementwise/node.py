"""ElementwiseNode: runs the one fused kernel of its plan for all gradients that are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.modes.state import modes
from numgrad.graph.node import FREED, OutputMeta
from numgrad.graph.recorder import place_of
from numgrad.graph.tensor import Tensor, wrap
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

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the rules, or the kernel for all examples of a batch if nobody records that."""
        gradient, plan = gradients[0], self.plan
        if modes.trace is None or modes.grad or gradient is None or plan.laid:
            return super().run_tensors(gradients)
        arrays = modes.trace.fused(self, gradient)
        if arrays is None:
            return super().run_tensors(gradients)
        computed = iter(arrays)
        results = [
            None if source is None else wrap(next(computed)) if source else gradient
            for source in plan.sources
        ]
        return results if self.shapes is None else self._fit(results, plan.owned)[0]

    def run_kernel(self, gradient: Array, saved: Any) -> list[Array] | None:
        """Return what the kernel gives for a batch of gradients, and of what was saved.

        None where rules compute something in another dtype than the kernel does.

        Parameters
        ----------
        gradient : numpy.ndarray
            With the examples along its first dim.
        saved : tuple
            As a node saves it; what is not one for all examples lies so, too.
        """
        plan = self.plan
        compute = wide = gradient.dtype
        if self.shapes is not None:
            compute = self.parameters["compute"]
            if plan.is_narrow(gradient, saved, compute):
                return None
            wide = compute if compute.kind == "c" else gradient.dtype
        if not plan.kernel_outputs:
            return []
        kernel, beside = plan.kernel_with(saved, wide)
        operands = [gradient, *plan.values(saved), *beside]
        run = plan.function_for(kernel, operands, compute, wide)
        return run(*operands)

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
        arrays = []
        if plan.kernel_outputs:
            run, operands = self._unequal(gradient)
            arrays = run(*operands)
            if modes.steps is not None:
                known = [
                    wrap(each) if type(each) is np.ndarray else f"a{number - 1}"
                    for number, each in enumerate(operands)
                ]
                outputs = [wrap(array) for array in arrays]
                modes.steps.steps.append(step_of(None, known, {}, outputs, run, True))
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
        run = plan.function_for(kernel, operands, dtype, dtype)
        return plan.place(gradient, run(*operands))

    def _unequal(self, gradient: Array) -> tuple[Callable[..., list[Array]], list[Any]]:
        """Return what computes the gradients of operands that were broadcast or cast, and of what.

        That is the cotangent, what was saved, and what is kept beside.
        """
        if self.saved is None:
            raise RuntimeError(FREED)
        self.raise_if_modified()
        plan, metas, compute = self.plan, self.shapes, self.parameters["compute"]
        # A real input of a complex operation gets the real part of its gradient in _fit.
        wide = compute if compute.kind == "c" else gradient.dtype
        shapes = None
        if gradient.size > FEW_ELEMENTS:  # sums of few numbers are not worth a kernel of their own
            shapes = tuple([meta[0] for meta, s in zip(metas, plan.sources, strict=True) if s])
            if all(shape == gradient.shape for shape in shapes):
                shapes = None
        kernel, beside = plan.kernel_with(self.saved, wide)
        operands = [gradient, *plan.values(self.saved), *beside]
        return plan.function_for(kernel, operands, compute, wide, shapes), operands

    def _is_narrow(self, gradient: Array) -> bool:
        saved, compute = self.saved, self.parameters["compute"]
        return saved is not None and self.plan.is_narrow(gradient, saved, compute)

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
