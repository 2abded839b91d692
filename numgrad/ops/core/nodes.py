"""PrimitiveNode: what is recorded of a call of a primitive, and `Call`, what its kind shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, ClassVar

import numpy as np

from numgrad.base.halves import HALF, WIDE, widened
from numgrad.base.tuning import KEPT_LAYOUTS
from numgrad.graph.modes.state import call_interceptors
from numgrad.graph.node import FREED, Node, OutputMeta, unpack_array
from numgrad.graph.recorder import place_of
from numgrad.graph.saved_attributes import saved_properties
from numgrad.graph.saved_tensors import restore_tensor
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, wrap
from numgrad.graph.upward import upward
from numgrad.ops.calls.node_source import Saved
from numgrad.ops.calls.rule_programs import Gradients, note_rules
from numgrad.ops.core.places import strides_of
from numgrad.ops.core.plan import Plan, Rule
from numgrad.ops.core.saved_names import fact_properties, saved_name

__all__ = ["Call", "PrimitiveNode", "derived_positions", "fitted", "make_node_class"]

Shape = tuple[int, ...]


class Call:
    """What the nodes of one kind of call of a primitive share, and what runs their rules.

    Attributes
    ----------
    plan : Plan
    parameters : dict
    shapes, output_metas : tuple
        (shape, dtype) of each input (None of a number), and of each output.
    lies : list
        How those inputs lay for which the plan asks.
    saved_places : tuple
        What the nodes save; see `Saved`.
    programs : dict or None
        Of calls that are remembered: for how gradients lie in memory, what runs the rules on them.
    counted : bool
        Whether shapes follow from numbers, so that the next call may have others.
    """

    __slots__ = (
        "counted",
        "lies",
        "output_metas",
        "parameters",
        "plan",
        "programs",
        "saved_places",
        "shapes",
    )

    def __init__(
        self,
        plan: Plan,
        parameters: dict[str, Any],
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        held: int = 0,
    ) -> None:
        self.plan = plan
        self.parameters = parameters
        self.shapes = tuple([_meta(each) if isinstance(each, Tensor) else None for each in inputs])
        self.output_metas = tuple([_meta(each) for each in outputs])
        self.saved_places: Saved = plan.saved_places
        if plan.held and plan.holds(parameters):  # then there is something to be freed
            kept: Iterable[Any] = range(held) if held else (plan.held,)
            self.saved_places += tuple([("held", each) for each in kept])
        names = plan.place_names
        self.lies = [strides_of(inputs[at]._array) for _, at in names] if names else []
        self.programs: dict[Any, Any] | None = None
        self.counted = False

    def remember(self) -> None:
        """Let what runs the rules be remembered, if that does not depend on numbers."""
        if self.programs is None and self.plan.repeats:
            self.programs = {}

    def with_numbers(self, parameters: dict[str, Any], output_metas: Any = None) -> Call:
        """Return the same of a call with other numbers in parameters, such as another index."""
        call: Call = object.__new__(Call)
        call.plan, call.shapes, call.lies = self.plan, self.shapes, self.lies
        call.saved_places, call.programs = self.saved_places, self.programs
        call.counted, call.parameters = self.counted, parameters
        call.output_metas = output_metas or self.output_metas
        return call

    def forgotten(self) -> Call:
        """Return the same, for a node that is unlike others of its kind."""
        call = copy(self)
        call.programs = None
        return call

    def run(self, node: PrimitiveNode, gradients: Sequence[Any]) -> Gradients:
        """Return the gradients of the inputs of a node; see `Node.run_arrays`."""
        programs = self.programs
        if programs is None or call_interceptors:
            return node.run_rules(gradients)
        key: Any
        if len(gradients) == 1:
            (gradient,) = gradients
            if gradient is None:
                return node.run_rules(gradients)
            key = gradient.strides, gradient.dtype, type(node.targets[0])
        else:
            key = tuple(
                [each if each is None else (each.strides, each.dtype) for each in gradients]
                + [type(node.targets[0])]
            )
        program = programs.get(key)
        if program is None:
            if len(programs) >= KEPT_LAYOUTS:
                return node.run_rules(gradients)
            return note_rules(programs, key, node, gradients)
        found: Gradients = program(node, gradients)
        return found


def _meta(tensor: Tensor) -> OutputMeta:
    array = tensor._array
    if type(array) is not np.ndarray:
        array = place_of(array)
    return array.shape, array.dtype


class PrimitiveNode(Node):
    """The node of a primitive: runs the rules of those inputs that need a gradient."""

    __slots__ = ("call",)

    primitive: ClassVar[Any]
    call: Any  # a Call, or a plan that is all that nodes share

    plan = property(lambda self: self.call.plan)
    parameters = property(lambda self: self.call.parameters)
    shapes = property(lambda self: self.call.shapes)
    output_metas = property(lambda self: self.call.output_metas)
    lies = property(lambda self: self.call.lies)

    def run_arrays(self, gradients: Sequence[Any]) -> Gradients:
        """Run the rules on arrays, by what is remembered of calls like this."""
        found: Gradients = self.call.run(self, gradients)
        return found

    def run_rules(self, gradients: Sequence[Any]) -> Gradients:
        """Run the rules by what is in the node, and nothing that is remembered of others."""
        results, owned = self.rules_on(gradients)
        return [None if each is None else each._array for each in results], owned

    def rules_on(
        self, gradients: Sequence[Any]
    ) -> tuple[Sequence[Tensor | None], Sequence[bool | None]]:
        """Run the rules on arrays, and return tensors that record nothing and whose these are."""
        tensors = [None if gradient is None else wrap(gradient) for gradient in gradients]
        results = self.run_tensors(tensors)
        owned: list[bool] = []
        arguments = set(map(id, tensors))
        for result in results:
            # A view has a base, or in inference mode an owner.
            if result is None or result._base is not None or result._owner is not None:
                owned.append(False)
            else:
                owned.append(id(result) not in arguments)
                arguments.add(id(result))
        return results, owned

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the rules on tensors; under grad mode that records them."""
        results: list[Tensor | None] = [None] * len(self.targets)
        if gradients[0] is None and all(gradient is None for gradient in gradients):
            return results
        call = self.call
        plan, shapes = call.plan, call.shapes
        environment = self._environment(call, gradients)
        if not self.primitive.takes_half and self.output_metas[0][1] == HALF:
            environment = _in_float32(environment)
        for position, function, parameters in self._rules(environment):
            environment["position"] = position
            result = function(*[environment[name] for name in parameters])
            if result is None:
                continue
            if position in plan.laid:
                result = self._laid(result, position, environment)
            if shapes is not None:
                array = result._array
                shape, dtype = shapes[position]
                if array.shape != shape or array.dtype != dtype:
                    result = fitted(result, shape, dtype)
            results[position] = result
        return results

    def _rules(self, environment: dict[str, Any]) -> Iterable[tuple[int, Rule, tuple[str, ...]]]:
        """Return the rules to run; see `Plan`."""
        found: Iterable[tuple[int, Rule, tuple[str, ...]]] = self.plan.rules
        return found

    def _laid(self, result: Tensor, position: int, environment: dict[str, Any]) -> Tensor:
        """Return what a rule gave, laid out as the gradient of that input is."""
        raise NotImplementedError

    def restore(self) -> dict[str, Any]:
        """Return what was saved, by the names that rules know it by."""
        saved: Any = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        plan = self.call.plan
        environment: dict[str, Any] = {}
        for index, (kind, position) in enumerate(plan.saved):
            value = saved[3 * index]
            if kind != "number":
                edge = self._edge_of_saved(kind, position)
                owner = None if kind == "input" else self
                value = restore_tensor(saved[3 * index : 3 * index + 3], edge, owner)
            environment[plan.names[index]] = value
        if plan.held:
            self._raise_if_held_modified()
        return environment

    def _raise_if_held_modified(self) -> None:
        """Raise if an index or a mask has been written to since it was read."""
        saved: Any = self.saved
        first = len(self.plan.saved)
        for at in range(3 * first, 3 * (first + self._held_count()), 3):
            if saved[at + 1] is not None:
                unpack_array(saved[at : at + 3], NO_EDGE)

    def _environment(self, call: Any, gradients: Sequence[Tensor | None]) -> dict[str, Any]:
        """Return the values of what the rules name; `call` is the node's."""
        plan = call.plan
        environment = call.parameters | self.restore()
        for name, position in plan.shape_names:
            environment[name] = call.shapes[position][0]
        if plan.place_names:
            names = [name for name, _ in plan.place_names]
            environment.update(zip(names, call.lies, strict=True))
        if plan.of_all:
            environment["shapes"] = [shape for shape, _ in call.shapes]
            inputs: list[Any] = [None] * len(self.targets)
            for (kind, position), name in zip(plan.saved, plan.names, strict=True):
                if kind == "input":
                    inputs[position] = environment[name]
            environment["inputs"] = inputs
        environment["g"] = gradients[0]
        if self.num_outputs != 1:
            environment |= {"g": list(gradients), "g0": gradients[0]}
            environment["output_metas"] = call.output_metas
        return environment

    def saved_edges(self) -> list[Edge]:
        """Return where the saved tensors hung in the graph; of a number, nowhere."""
        edges = [self._edge_of_saved(kind, position) for kind, position in self.plan.saved]
        return edges + [NO_EDGE] * self._held_count()

    def _held_count(self) -> int:
        """Return how many indices and masks are saved."""
        if not self.plan.held:
            return 0
        return sum(kind == "held" for kind, _ in self.call.saved_places)

    def count_of_gradients(self) -> int:
        """Return how many gradients a call takes: none for indices that come last, as of `max`."""
        count = self.num_outputs
        while count > 1 and not self._is_differentiable(count - 1):
            count -= 1
        return count

    def _is_differentiable(self, output: int) -> bool:
        metas = self.output_metas
        return output not in self.primitive.constant and (
            metas is None or metas[output][1].kind in "fc"
        )

    def _edge_of_saved(self, kind: str, position: int) -> Edge:
        if kind != "output":
            return NO_EDGE if kind == "number" else self.edge(position)
        reached = self._is_differentiable(position) and self.is_reached()
        return (self, position) if reached else NO_EDGE

    def saved_names(self) -> list[str]:
        """Return PyTorch's names of what was saved."""
        names = [saved_name(name, self.primitive.name) for name in self.plan.names]
        return names + [self.plan.held] * self._held_count()

    def takes_tensor(self, index: int) -> bool:
        """Return whether a saved value is that of an operand which may be a tensor."""
        kind, position = self.plan.saved[index]
        return kind != "output" and position < len(self.targets)

    def raise_if_modified(self) -> None:
        """Raise if a tensor that was saved has been written to since."""
        saved: Any = self.saved
        for index, (kind, position) in enumerate(self.plan.saved):
            if kind != "number":
                edge = self._edge_of_saved(kind, position)
                unpack_array(saved[3 * index : 3 * index + 3], edge, self)
        self._raise_if_held_modified()


def fitted(tensor: Tensor, shape: Shape, dtype: Any) -> Tensor:
    """Return the gradient of an input in the shape and the dtype of that."""
    if tensor._array.shape != shape:
        tensor = upward.sum_to_size(tensor, shape)
    if tensor._array.dtype.kind == "c" != dtype.kind:
        tensor = tensor.real  # as PyTorch has it: a view
    if tensor._array.dtype != dtype:
        tensor = upward.cast(tensor, dtype)
    return tensor


def _in_float32(environment: dict[str, Any]) -> dict[str, Any]:
    """Return what rules name in the dtype to compute in; their results are cast at the end."""

    def wide(value: Any) -> Any:
        if isinstance(value, Tensor):
            return upward.cast(value, WIDE) if value._array.dtype == HALF else value
        return [wide(each) for each in value] if type(value) is list else widened(value)

    return {name: wide(value) for name, value in environment.items()}


def derived_positions(rules: Sequence[Any]) -> tuple[int, ...] | None:
    """Return the positions of the inputs with a rule; None if that is all of them or none."""
    derived = tuple([k for k, rule in enumerate(rules) if rule is not None])
    return derived if 0 < len(derived) < len(rules) else None


def make_node_class(
    name: str, base: type[Node], may_save: Iterable[str] = (), **attributes: Any
) -> type[Node]:
    """Return a node class of PyTorch's name for an operation.

    Parameters
    ----------
    name : str
    base : type
    may_save : iterable of str
        The names of operands and results that rules need.
    **attributes
        Of the class.
    """
    primitive = attributes["primitive"].name if "primitive" in attributes else ""
    attributes |= saved_properties([saved_name(kept, primitive) for kept in may_save])
    attributes |= fact_properties(primitive)
    return type(name, (base,), {"__slots__": (), "__module__": "numgrad", **attributes})
