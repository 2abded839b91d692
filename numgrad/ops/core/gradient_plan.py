"""ElementwiseNode, and the plan of its gradients: what is saved, and the fused kernel.

A plan belongs to a primitive, a choice of the inputs that need a gradient, and which operands are
tensors: what is saved, and the one kernel that computes all of the gradients in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS, RECYCLED_BYTES
from numgrad.codegen.define import define
from numgrad.codegen.expression import Symbol, literal
from numgrad.codegen.render import Formula
from numgrad.graph.modes import modes
from numgrad.graph.node import FREED, OutputMeta, unpack_array
from numgrad.graph.recorder import place_of
from numgrad.graph.saved_tensors import restore_tensor
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, wrap
from numgrad.graph.upward import upward
from numgrad.kernels.move.memory_order import as_dtype
from numgrad.kernels.pointwise.elementwise import FLOATING
from numgrad.ops.core.gradient_kernel import GradientKernel, empty_in_order, orders_of
from numgrad.ops.core.places import relaid
from numgrad.ops.core.plain_calls import run_source
from numgrad.ops.core.primitive import Rule
from numgrad.ops.core.programs import Gradients, RecordedNode, Saved, SharedCall
from numgrad.ops.core.promotion import broadcast_shapes
from numgrad.ops.core.saved_names import saved_name
from numgrad.ops.core.spare import spare_of
from numgrad.ops.core.steps import step_of

__all__ = ["ElementwiseNode", "GradientPlan"]

Array = np.ndarray[Any, Any]


class Differentiable(Protocol):
    """What a plan needs to know of an elementwise primitive; see `ElementwisePrimitive`."""

    name: str
    inputs: tuple[str, ...]
    kind: str
    masks: frozenset[int]
    tensor_count: int
    rules: tuple[tuple[Rule, tuple[str, ...]] | None, ...]
    closer: tuple[Rule, tuple[str, ...]] | None
    node_class: Any

    def is_identity(self, position: int) -> bool:
        """Whether the gradient of an operand is the cotangent itself."""

    def goes_by(self, position: int) -> tuple[tuple[Rule, tuple[str, ...]], bool]:
        """Return the rule as whose operations a gradient lies, and whether it is not its own."""


class UnequalCall(SharedCall):
    """What nodes share whose operands were broadcast or cast on the way forward.

    Attributes
    ----------
    plan : GradientPlan
    metas : tuple
        The dtype of the computation, and (shape, dtype) of each input.
    """

    __slots__ = ("metas", "plan", "saved_places")

    def __init__(self, plan: GradientPlan, metas: tuple[Any, Sequence[Any]]) -> None:
        self.plan = plan
        self.metas = metas
        self.saved_places = plan.saved_places
        self.programs = None

    def remember(self) -> None:
        """Let what gives the gradients be remembered, if the nodes keep no operand beside."""
        if self.plan.closer is None:
            super().remember()


class ElementwiseNode(RecordedNode):
    """The node of an elementwise primitive: one fused kernel for all gradients that are needed."""

    __slots__ = ()

    primitive: ClassVar[Differentiable]
    # A plan, where every tensor input has the output's shape and dtype.
    call: GradientPlan | UnequalCall

    plan = property(lambda self: self.call.plan)
    metas = property(lambda self: self.call.metas)

    def run_rules(self, gradients: Sequence[Any]) -> Gradients:
        """Run the kernel by what is in the node, and nothing that is remembered of others."""
        if self.metas is not None:
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
        arrays = self._run_unequal(gradient) if plan.kernel_outputs else []
        if arrays and modes.steps is not None:
            operands: list[Any] = [wrap(gradient)]
            operands += [
                wrap(saved) if type(saved) is np.ndarray else f"a{index}"
                for index, saved in enumerate(plan.values(self.saved))
            ]
            kernel, outputs = self._kernel_of(gradient), [wrap(array) for array in arrays]
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

    def _kernel_of(self, gradient: Array) -> Callable[..., list[Array]]:
        """Return what computes the gradients of operands that were broadcast or cast.

        It takes the cotangent, which lies as this one, and what was saved.
        """
        plan, (compute, metas) = self.plan, self.metas
        casts = [
            position >= 0 and position not in self.primitive.masks for position in plan.positions
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
        fitted, fitted_owned = list(tensors), list(owned)
        for position, tensor in enumerate(tensors):
            if tensor is None:
                continue
            shape, dtype = self.metas[1][position]
            array = tensor._array
            if array.shape == shape and array.dtype == dtype:
                continue
            if array.shape != shape:
                tensor = upward.sum_to_size(tensor, shape)
            if array.dtype.kind == "c" != dtype.kind:
                tensor = tensor.real  # as PyTorch has it: a view
            if tensor._array.dtype != dtype:
                tensor = upward.cast(tensor, dtype)
            fitted[position] = tensor
            fitted_owned[position] = tensor._base is None and tensor._array is not array
        return fitted, fitted_owned

    def saved_edge(self, position: int) -> Edge:
        """Return where a saved tensor hung in the graph: -1 is the output."""
        if position >= 0:
            return self.edge(position)
        return (self, 0) if self.is_reached() else NO_EDGE

    def output_meta(self, number: int) -> OutputMeta | None:
        """Return the shape and the dtype of the output: without `metas`, those of the inputs."""
        node: Any = self
        while isinstance(node, ElementwiseNode):
            if node.metas is not None:
                dtype, metas = node.metas
                if node.primitive.kind == "real" and dtype.kind == "c":
                    dtype = np.empty(0, dtype).real.dtype
                return broadcast_shapes([meta[0] for meta in metas if meta is not None]), dtype
            position = next(k for k, target in enumerate(node.targets) if target is not None)
            node, number = node.edge(position)
        found: OutputMeta | None = node.output_meta(number)
        return found

    def saved_edges(self) -> list[Edge]:
        """Return where the saved tensors hung in the graph; of a number, nowhere."""
        count = len(self.targets)
        return [self.saved_edge(p) if p < count else NO_EDGE for p in self.plan.positions]

    def saved_names(self) -> list[str]:
        """Return PyTorch's names of what was saved."""
        names, own = self.primitive.inputs, self.primitive.name
        return ["result" if p < 0 else saved_name(names[p], own) for p in self.plan.positions]

    def takes_tensor(self, index: int) -> bool:
        """Return whether a saved value is that of an operand which may be a tensor."""
        return 0 <= self.plan.positions[index] < self.primitive.tensor_count

    def raise_if_modified(self) -> None:
        """Raise if a tensor that was saved has been written to since."""
        saved: Any = self.saved
        for index, position in enumerate(self.plan.positions):
            if saved[3 * index + 1] is not None:
                unpack_array(saved[3 * index : 3 * index + 3], self.saved_edge(position), self)

    def restore(self) -> dict[str, Any]:
        """Return what was saved, by the names that rules know it by."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        environment: dict[str, Any] = {}
        names = self.primitive.inputs
        for index, position in enumerate(self.plan.positions):
            value, counter, version = saved[3 * index : 3 * index + 3]
            if counter is not None:
                owner = self if position < 0 else None
                value = restore_tensor((value, counter, version), self.saved_edge(position), owner)
            environment["y" if position < 0 else names[position]] = value
        return environment

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the rules on tensors; under grad mode that records them."""
        gradient = gradients[0]
        plan = self.plan
        if gradient is None:
            return plan.nothing[0]
        environment = self.restore()
        environment["g"] = gradient
        results: list[Tensor | None] = []
        for position, source in enumerate(plan.sources):
            if source is None:
                results.append(None)
                continue
            rule, parameters = self.primitive.rules[position]  # type: ignore[misc]
            if self.primitive.closer is not None:
                spare = spare_of(self.saved, len(plan.positions))
                if spare is not None and spare.dtype == gradient._array.dtype:
                    rule, parameters = self.primitive.closer
                    environment["input"] = wrap(spare)
            result = rule(*[environment[name] for name in parameters])
            if position in plan.laid:
                result = self._laid(result, position, environment)
            if self.metas is not None:
                shape, dtype = self.metas[1][position]
                if result._array.shape != shape:
                    result = upward.sum_to_size(result, shape)
                if result._array.dtype.kind == "c" != dtype.kind:
                    result = result.real
                if result._array.dtype != dtype:
                    result = upward.cast(result, dtype)
            results.append(result)
        return results

    def _laid(self, result: Tensor, position: int, environment: dict[str, Any]) -> Tensor:
        """Return what a rule gave, laid out as the gradient of that input is."""
        array = result._array
        known = {
            name: place_of(value._array) if isinstance(value, Tensor) else value
            for name, value in environment.items()
        }
        (order,) = orders_of(array.shape, known, _lies(self.primitive, [position]))
        memory = empty_in_order(array.shape, order, array.dtype)
        sources = [v._array for v in environment.values() if isinstance(v, Tensor)]
        return relaid(result, memory, sources)

    def run_batched(
        self, gradients: Sequence[Tensor | None], count: int
    ) -> Sequence[Tensor | None]:
        """Run the fused kernel once, on operands that are broadcast over the last dim."""
        gradient = gradients[0]
        if gradient is None:
            return self.plan.nothing[0]
        array, plan = gradient._array, self.plan
        if array.dtype.kind != "f" or (self.metas and self.metas[0] != array.dtype):
            return super().run_batched(gradients, count)
        if self.saved is None:
            raise RuntimeError(FREED)
        self.raise_if_modified()
        kernel, beside = plan.kernel_with(self.saved, array.dtype)
        kept = [*plan.values(self.saved), *beside]
        operands = [o[..., None] if type(o) is np.ndarray else o for o in kept]
        outputs = [array.dtype] * plan.kernel_outputs
        arrays = kernel(array.shape, [array, *operands], outputs) if outputs else []
        results: list[Tensor | None] = []
        for position, found in enumerate(plan.place(array, arrays)[0]):
            result = None if found is None else wrap(found)
            if result is not None and self.metas is not None:
                shape, dtype = self.metas[1][position]
                if found.shape != (*shape, count):
                    result = upward.sum_to_size(result, (*shape, count))
                if found.dtype != dtype:
                    result = upward.cast(result, dtype)
            results.append(result)
        return results


def _walks_otherwise(gradient: Array, saved: Any) -> bool:
    """Whether a loop over a gradient and what was saved is not one over rows.

    Where all elements of the gradient are one, as behind a sum, that is for the others to say.
    """
    return any(gradient.strides) or not all(
        value.flags.c_contiguous for value in saved[::3] if type(value) is np.ndarray
    )


def _lies(primitive: Differentiable, positions: Sequence[int]) -> Formula:
    """Return how the gradients of some operands lie, as `GradientKernel` wants to know it."""

    def lies(symbols: dict[str, Symbol]) -> list[Symbol]:
        found = []
        for position in positions:
            (rule, parameters), declared = primitive.goes_by(position)
            symbol = literal(rule(*[symbols[name] for name in parameters]))
            # Zeros are made like the cotangent, unless somebody says otherwise.
            if symbol.operation == "constant" and not declared:
                symbol = symbols["g"]
            found.append(symbol)
        return found

    return lies


class GradientPlan:
    """What to save and which kernel to run, for one choice of inputs that need a gradient.

    Attributes
    ----------
    positions : tuple of int
        What is saved, in order: the positions of operands, and -1 for the output.
    sources : tuple of (bool or None)
        For each input whether the kernel computes its gradient; False if that is the cotangent
        itself, None if it gets none.
    owned : tuple of (bool or None)
        For each input whether its gradient is the receiver's to write to; see `Node.run_arrays`.
    laid : tuple of int
        The inputs whose gradients lie otherwise than their rules would have them.
    saved_places : tuple
        The same as `numgrad.ops.core.programs.Saved`.
    run : callable
        ``run(node, gradients)`` does what `Node.run_arrays` does for such a node.
    """

    __slots__ = (
        "closer",
        "closer_entries",
        "entries",
        "flat_entries",
        "kernel",
        "kernel_outputs",
        "laid",
        "nothing",
        "owned",
        "pattern",
        "positions",
        "run",
        "saved_places",
        "sources",
    )

    metas = None  # nothing was broadcast or cast

    def __init__(self, primitive: Differentiable, needs: int, kinds: str) -> None:
        wanted = [
            position
            for position in range(primitive.tensor_count)
            if (needs >> position) & 1 and primitive.rules[position] is not None
        ]
        named: list[str] = []
        for position in wanted:
            named += primitive.rules[position][1]  # type: ignore[index]
        self.positions = tuple(
            position for position, name in enumerate(primitive.inputs) if name in named
        ) + ((-1,) if "y" in named else ())
        self.sources = tuple(
            (not primitive.is_identity(position)) if position in wanted else None
            for position in range(primitive.tensor_count)
        )
        # The only receiver of the cotangent itself may write to it if we might have.
        cotangent = None if len(wanted) == 1 else False
        self.owned = tuple(True if source else cotangent for source in self.sources)
        self.nothing = (None,) * len(self.sources), self.owned
        computed = [position for position in wanted if self.sources[position]]
        self.kernel_outputs = len(computed)

        def formula(symbols: dict[str, Symbol]) -> list[Symbol]:
            outputs = []
            for position in computed:
                rule, parameters = primitive.rules[position]  # type: ignore[misc]
                outputs.append(literal(rule(*[symbols[name] for name in parameters])))
            return outputs

        operand_names = ["y" if p < 0 else primitive.inputs[p] for p in self.positions]
        title = f"{primitive.name}, gradient of {', '.join(primitive.inputs[p] for p in computed)}"
        self.laid = tuple(position for position in wanted if primitive.goes_by(position)[1])
        self.kernel = GradientKernel(
            title, ["g", *operand_names], formula, _lies(primitive, computed)
        )
        letters = {"t": "a", "m": "b", "n": "s", "q": "p"}
        self.pattern = "a" + "".join(
            "a" if position < 0 else letters[kinds[position]] for position in self.positions
        )
        self.entries: dict[Any, Any] = {}  # of floating point dtypes, for few elements
        self.flat_entries: dict[Any, Any] = {}  # for more
        # What is computed with the operand that is kept beside the output, if there is such a rule.
        self.closer: GradientKernel | None = None
        self.closer_entries: dict[Any, Any] = {}
        if primitive.closer is not None and computed:
            rule, parameters = primitive.closer
            self.closer = GradientKernel(
                f"{title}, with the input",
                ["g", "y", "input"],
                lambda symbols: [literal(rule(*[symbols[name] for name in parameters]))],
                _lies(primitive, computed),
            )
        namespace = {
            "FREED": FREED,
            "FEW_ELEMENTS": FEW_ELEMENTS,
            "empty": np.empty,
            "closer_entries": self.closer_entries,
            "entries": self.entries,
            "nothing": self.nothing,
            "owned": self.owned,
            "plan": self,
            "walks_otherwise": _walks_otherwise,
        }
        name = f"{primitive.node_class.__name__}, operands {kinds}, gradients {needs:b}"
        first = self.kernel.deciding()
        run = run_source(
            kinds.replace("q", "n"),
            self.positions,
            self.sources,
            spare=self.closer is not None,
            decide=[
                index
                for index, position in enumerate(self.positions)
                if operand_names[index] in first and (position < 0 or kinds[position] not in "nq")
            ],
        )
        self.run = define("run", run, f"run of {name}", namespace)
        self.saved_places: Saved = tuple(
            [
                ("output", 0) if p < 0 else ("number" if kinds[p] in "nq" else "input", p)
                for p in self.positions
            ]
        ) + ((("input", 0),) if primitive.closer is not None else ())  # `spare_of` finds it there

    @property
    def plan(self) -> GradientPlan:
        """Itself: of nodes that share nothing else."""
        return self

    def remember(self) -> None:
        """Do nothing: what it runs is made once, and looks at how its arrays lie."""

    def forgotten(self) -> GradientPlan:
        """Return itself."""
        return self

    def values(self, saved: Any) -> tuple[Any, ...]:
        """Return the arrays and numbers among what a node saved, without what stands behind."""
        found: tuple[Any, ...] = saved[: 3 * len(self.positions) : 3]
        return found

    def kernel_with(self, saved: Any, dtype: np.dtype[Any]) -> tuple[GradientKernel, list[Array]]:
        """Return the kernel for what a node saved, and what it takes besides that."""
        if self.closer is not None and dtype.kind == "f":
            spare = spare_of(saved, len(self.positions))
            if spare is not None:
                return self.closer, [spare]
        return self.kernel, []

    def run_flat(self, kernel: GradientKernel, operands: list[Any]) -> list[Array] | None:
        """Return what a kernel computes of operands that lie row by row; None if they do not.

        They have the cotangent's shape and dtype, or are numbers; and one thread does it.
        """
        gradient, *saved = operands
        shape, dtype = gradient.shape, gradient.dtype
        pattern = self.pattern + "a" * (len(operands) - len(self.pattern))
        if gradient.flags.c_contiguous:
            flat = [gradient.ravel()]
        elif not any(gradient.strides):  # one number, seen everywhere
            pattern = "s" + pattern[1:]
            flat = [gradient[(0,) * gradient.ndim].item()]
        else:
            return None
        for operand in saved:
            if type(operand) is not np.ndarray:
                flat.append(operand)
            elif operand.flags.c_contiguous:
                flat.append(operand.ravel())
            else:
                return None
        entry = self.flat_entries.get((kernel, pattern, dtype))
        if entry is None:
            entry = kernel.entry(pattern, dtype, self.kernel_outputs)
            self.flat_entries[kernel, pattern, dtype] = entry
        arrays = [np.empty(shape, dtype) for _ in range(self.kernel_outputs)]
        entry(*flat, *[array.ravel() for array in arrays])
        return arrays

    def place(self, gradient: Array, arrays: Sequence[Array]) -> Gradients:
        """Return what the kernel computed, and the cotangent where that is a gradient itself."""
        computed = iter(arrays)
        return tuple(
            [
                None if source is None else next(computed) if source else gradient
                for source in self.sources
            ]
        ), self.owned
