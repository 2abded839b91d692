"""Primitives: an operation declared once, beside the rule of its derivative.

A `Primitive` is an operation on arrays that the graph records as one node. From its declaration
follow the node class with PyTorch's name, what has to be saved (read off the parameters of the
rules), and its entry in the `CATALOGUE`, from which methods, tests, docs and benchmarks come.

A rule is a plain function of tensors, one for each differentiable input. Its parameters say what
it needs, by name: ``g``, the cotangent; the names of outputs (``y`` unless declared otherwise);
the names of inputs; the names of static parameters; ``<input>_shape``; and ``<input>_lies``, how
an input lay in memory (see `numgrad.ops.core.places`).
"""

from __future__ import annotations

import functools
import inspect
import keyword
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from numgrad.base.halves import HALF, HALVES, WIDE, narrowed, wide_dtype, widened
from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.anomaly import note_node
from numgrad.graph.modes import interceptors, modes
from numgrad.graph.node import FREED, Node, SavedArray
from numgrad.graph.recorder import Traced
from numgrad.graph.saved_attributes import saved_properties
from numgrad.graph.saved_tensors import pack_saved, restore_tensor
from numgrad.graph.tensor import NO_EDGE, Edge, Tensor, refresh_view, view_of, wrap
from numgrad.graph.upward import upward
from numgrad.ops.core.places import strides_of
from numgrad.ops.core.programs import RecordedNode, Saved, SharedCall, attach_for
from numgrad.ops.core.saved_names import fact_properties, saved_name

__all__ = [
    "CATALOGUE",
    "RESERVED",
    "Primitive",
    "PrimitiveNode",
    "Rule",
    "at_run_time",
    "check_name",
    "check_names",
    "enter",
    "make_node_class",
    "replaced",
    "require_tensor",
    "save_tensor",
]

Rule = Callable[..., Any]

# Every primitive there is, by name. Tests, docs and benchmarks are made from it.
CATALOGUE: dict[str, Any] = {}
# The names of our own operations, functions and methods, once they are complete. Whoever declares
# another operation later can declare it again, but not one of these.
RESERVED: set[str] = set()
replaced: list[Callable[[], None]] = []  # what to do when somebody does


def check_name(name: str) -> None:
    """Raise unless an operation of this name can be declared.

    Raises
    ------
    ValueError
        If numgrad has it, or nobody could write it in a program.
    TypeError
        If it is no string.
    """
    if RESERVED:  # our own have parts with names of other kinds
        if not isinstance(name, str):
            raise TypeError(f"the name of an operation is a str, not {type(name).__name__}")
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"an operation can't be called {name!r}: Python has no such names")
    if name in RESERVED:
        raise ValueError(
            f"numgrad has {name} already, as PyTorch or NumPy may have: declare your operation "
            "under another name"
        )


def enter(primitive: Any) -> None:
    """Enter a primitive in the catalogue, in place of one that was declared outside of numgrad."""
    name = primitive.name
    check_name(name)
    known = CATALOGUE.get(name)
    if known is not None and not RESERVED:
        raise ValueError(f"the catalogue has a primitive called {name} already")
    CATALOGUE[name] = primitive
    if known is not None:
        for forget in replaced:
            forget()


def save_tensor(tensor: Tensor) -> SavedArray:
    """Return what a node keeps of a tensor: never the tensor itself, which could close a cycle."""
    counter = tensor._counter
    return (tensor._array, counter, counter[0])


# What a rule's parameters mean that name neither an input nor an output, nor a static parameter.
_MEANINGS = {
    "g": "the cotangent",
    "g0": "the first cotangent",
    "inputs": "all inputs",
    "output_metas": "shapes and dtypes of the outputs",
    "position": "the position of the input",
    "shapes": "the shapes of all inputs",
}


def check_names(
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str] = ("y",),
    parameters: Iterable[str] = (),
) -> None:
    """Raise if an input or parameter of an operation has a name that means something else in rules.

    A rule gets what its own parameters name. If an input were called ``y``, a rule that names it
    would be given the output, and gradients would be wrong without a word.

    Parameters
    ----------
    name : str
        Of the operation.
    inputs, outputs : sequence of str
        Their names.
    parameters : iterable of str
        The names of static parameters.

    Raises
    ------
    ValueError
        If a name is taken, or there twice.

    Examples
    --------
    >>> check_names("scale", ["x", "y"])
    Traceback (most recent call last):
    ValueError: scale: an input can't be called 'y': in a rule that means the output
    """
    taken = {"y": "the output", **_MEANINGS, **dict.fromkeys(outputs, "an output")}
    taken |= {f"{each.lstrip('*')}_shape": f"the shape of {each!r}" for each in inputs}
    taken |= {f"{each.lstrip('*')}_lies": f"how {each!r} lies" for each in inputs}
    if len(outputs) == 1:
        taken[outputs[0]] = "the output"
    for kind, names in (("an input", inputs), ("a parameter", parameters)):
        for each in names:
            each = each.lstrip("*")
            if not each.isidentifier() or keyword.iskeyword(each):
                raise ValueError(
                    f"{name}: {kind} can't be called {each!r}: Python has no such names"
                )
            if each in taken:
                raise ValueError(
                    f"{name}: {kind} can't be called {each!r}: in a rule that means {taken[each]}"
                )
            taken[each] = "an input"


def require_tensor(value: Any, function: str, argument: str, position: int) -> Tensor:
    """Return `value` if it is a tensor, else raise PyTorch's TypeError."""
    if isinstance(value, Tensor):
        return value
    raise TypeError(
        f"{function}(): argument '{argument}' (position {position}) must be Tensor, not "
        f"{type(value).__name__}"
    )


class _Plan(NamedTuple):
    """What the backward pass of a primitive takes, for some inputs that need a gradient.

    Attributes
    ----------
    rules : tuple
        For each of these inputs its position, its rule, and what that names.
    saved : tuple
        What they name of the inputs and outputs: ("input", i) and ("output", i).
    names : tuple of str
        By which names.
    shapes : tuple
        Names of shapes of inputs, and which input's.
    of_all : bool
        Whether they name all inputs or all shapes.
    held : str
        The parameter they name that may be an index or a mask, as large as a tensor that is saved.
    lies : tuple
        Names of how inputs lie, and which input.
    """

    rules: tuple[tuple[int, Rule, tuple[str, ...]], ...]
    saved: tuple[tuple[str, int], ...]
    names: tuple[str, ...]
    shapes: tuple[tuple[str, int], ...]
    of_all: bool
    held: str
    lies: tuple[tuple[str, int], ...]


_HELD = {"index", "indices", "mask"}


def _holds(plan: _Plan, parameters: dict[str, Any]) -> bool:
    """Whether rules need an index or a mask that was an argument (a number is none)."""
    return bool(plan.held) and not isinstance(parameters[plan.held], int)


def _in_float32(environment: dict[str, Any]) -> dict[str, Any]:
    """Return what rules name in the dtype to compute in; their results are cast at the end."""

    def wide(value: Any) -> Any:
        if isinstance(value, Tensor):
            return upward.cast(value, WIDE) if value._array.dtype == HALF else value
        return [wide(each) for each in value] if type(value) is list else widened(value)

    return {name: wide(value) for name, value in environment.items()}


class Call(SharedCall):
    """What the nodes of one kind of call of a `Primitive` share.

    Attributes
    ----------
    primitive : Primitive
    needs : int
        Bit i is set if input i needs a gradient.
    parameters : dict
    shapes, output_metas : tuple
        (shape, dtype) of each input, and of each output.
    lies : list
        How those inputs lay for which the plan asks.
    """

    __slots__ = (
        "lies",
        "needs",
        "output_metas",
        "parameters",
        "primitive",
        "saved_places",
        "shapes",
    )

    def __init__(
        self,
        primitive: Primitive,
        needs: int,
        parameters: dict[str, Any],
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
    ) -> None:
        self.primitive = primitive
        self.needs = needs
        self.parameters = parameters
        self.shapes = tuple([(each._array.shape, each._array.dtype) for each in inputs])
        self.output_metas = tuple([(each._array.shape, each._array.dtype) for each in outputs])
        plan = primitive.plan(needs, len(inputs))
        self.saved_places: Saved = plan.saved
        if plan.held and _holds(plan, parameters):  # then there is something to be freed
            self.saved_places += (("held", plan.held),)
        self.lies = [strides_of(inputs[position]._array) for _, position in plan.lies]
        self.programs = None

    def remember(self) -> None:
        """Let what runs the rules be remembered, if that does not depend on numbers."""
        if not self.primitive.by_numbers:
            super().remember()


class PrimitiveNode(RecordedNode):
    """The node of a primitive: runs the rules of those inputs that need a gradient."""

    __slots__ = ()

    primitive: ClassVar[Primitive]
    call: Call

    needs = property(lambda self: self.call.needs)
    parameters = property(lambda self: self.call.parameters)
    shapes = property(lambda self: self.call.shapes)
    output_metas = property(lambda self: self.call.output_metas)
    lies = property(lambda self: self.call.lies)

    def rules_on(
        self, gradients: Sequence[Any]
    ) -> tuple[Sequence[Tensor | None], Sequence[bool | None]]:
        """Run the rules on tensors that record nothing."""
        tensors = [None if gradient is None else wrap(gradient) for gradient in gradients]
        results = self.run_tensors(tensors)
        owned: list[bool] = []
        arguments = set(map(id, tensors))
        for result in results:
            owned.append(
                result is not None and result._base is None and id(result) not in arguments
            )
            arguments.add(id(result))
        return results, owned

    def run_batched(
        self, gradients: Sequence[Tensor | None], count: int
    ) -> Sequence[Tensor | None]:
        """Run the rules once, if they take a further dim."""
        if not self.primitive.rows:
            return super().run_batched(gradients, count)
        return self._run_rules(gradients, (count,))

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the rules."""
        return self._run_rules(gradients, ())

    def _run_rules(
        self, gradients: Sequence[Tensor | None], behind: tuple[int, ...]
    ) -> Sequence[Tensor | None]:
        """Run the rules on gradients that have further dims behind those of the outputs."""
        count = len(self.targets)
        results: list[Tensor | None] = [None] * count
        if all(gradient is None for gradient in gradients):
            return results
        primitive = self.primitive
        plan = primitive.plan(self.needs, count)
        environment = self._environment(plan, gradients, behind)
        if self.output_metas[0][1] == HALF and not primitive.takes_half:
            environment = _in_float32(environment)
        for position, function, parameters in plan.rules:
            environment["position"] = position
            result = function(*[environment[name] for name in parameters])
            if result is not None:
                shape, dtype = self.shapes[position]
                shape += behind
                array = result._array
                if array.shape != shape:
                    result = upward.sum_to_size(result, shape)
                if array.dtype.kind == "c" != dtype.kind:
                    result = result.real  # as PyTorch has it: a view
                if result._array.dtype != dtype:
                    result = upward.cast(result, dtype)
                results[position] = result
        return results

    def _environment(
        self, plan: _Plan, gradients: Sequence[Tensor | None], behind: tuple[int, ...]
    ) -> dict[str, Any]:
        """Return the values of what the rules name."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        environment: dict[str, Any] = dict(self.parameters)
        for name, position in plan.shapes:
            environment[name] = self.shapes[position][0] + behind
        if plan.lies:
            names = [name for name, _ in plan.lies]
            environment.update(zip(names, self.lies, strict=True))
        if plan.of_all:
            environment["shapes"] = [shape + behind for shape, _ in self.shapes]
            inputs: list[Any] = [None] * len(self.targets)
            environment["inputs"] = inputs
        for index, (kind, position) in enumerate(plan.saved):
            edge = self._edge_of_saved(kind, position)
            owner = None if kind == "input" else self
            value = restore_tensor(saved[3 * index : 3 * index + 3], edge, owner)
            environment[plan.names[index]] = value
            if plan.of_all and kind == "input":
                inputs[position] = value
        if self.num_outputs == 1:
            environment["g"] = gradients[0]
        else:
            environment["g"] = list(gradients)
            environment["g0"] = gradients[0]
            environment["output_metas"] = self.output_metas
        return environment

    def saved_edges(self) -> list[Edge]:
        """Return where the saved tensors hung in the graph."""
        plan = self.primitive.plan(self.needs, len(self.targets))
        edges = [self._edge_of_saved(kind, position) for kind, position in plan.saved]
        return [*edges, NO_EDGE] if _holds(plan, self.parameters) else edges

    def saved_names(self) -> list[str]:
        """Return PyTorch's names of what was saved."""
        primitive, count = self.primitive, len(self.targets)
        names = primitive.input_names(count)
        return [
            saved_name(
                names[position] if kind == "input" else primitive.outputs[position], primitive.name
            )
            for kind, position in primitive.saved_for(self.needs, count)
        ]

    def _edge_of_saved(self, kind: str, position: int) -> Edge:
        if kind == "input":
            return self.edge(position)
        differentiable = self.output_metas[position][1].kind in "fc" and self.is_reached()
        return (self, position) if differentiable else NO_EDGE


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


class _CompiledRule:
    """A rule and the names of its parameters."""

    __slots__ = ("function", "parameters")

    def __init__(self, function: Rule) -> None:
        self.function = function
        self.parameters = tuple(inspect.signature(function).parameters)


class Primitive:
    """An operation on arrays and the rules of its derivative.

    Parameters
    ----------
    name : str
        Its name in the catalogue.
    node : str
        PyTorch's name of the node.
    forward : callable
        ``forward(*arrays, **parameters)`` returns an array, or a tuple of arrays.
    inputs : sequence of str
        The names of the tensor inputs. A single name with a star (``"*tensors"``) takes any number.
    vjp : dict or sequence of rules
        For each input its rule, or None where no gradient flows. With any number of inputs, one
        rule for all, which may name ``position``, ``inputs`` and ``shapes``.
    outputs : sequence of str
        The names of the outputs.
    view : bool
        Whether the output shares the memory of the first input.
    linear : bool
        Whether the operation is linear in its inputs together, so that it is its own tangent map.
    rows : bool
        Whether the rules, which then save nothing, hold for a cotangent with a further dim behind.
    lies : callable, optional
        How the result lies in memory, if not row by row: a function that returns memory for it, or
        None where it lies row by row however its inputs lie. What it names (inputs, or ``inputs``
        for all of them, and parameters) is what decides. The forward puts its result in such
        memory, and a trace takes it for how the result will lie.
    gaps : bool
        Whether memory between the elements of inputs may be between those of the result.
    takes_half : bool
        Whether the forward takes float16 as it is, as those of views do. Others get float32, and
        their results are rounded.
    quick : callable, optional
        ``quick(*arrays, **parameters)`` returns a function of arrays that lie as these do, which
        does what the forward does with less around it; or None.
    few : callable, optional
        The same, for few elements of one dtype, in C order; it is asked first.
    writes : callable, optional
        ``writes(array, *arrays, **parameters)`` does in the memory of the first operand what the
        forward does in new memory, for operands that may overlap.
    by_numbers : bool
        Whether a rule looks at numbers in tensors, so that what it does differs between calls.
    listed : bool
        Whether it is an operation of the catalogue, and not a part of one.
    samples : sequence of callables
        Calls that the tests check the derivatives of: ``sample(make)`` returns a function, its
        tensors, and its keyword arguments; ``make(*shape, low=-3, high=3, distinct=False)`` gives
        a float64 tensor that requires grad.
    """

    def __init__(
        self,
        name: str,
        node: str,
        forward: Callable[..., Any],
        inputs: Sequence[str],
        vjp: Sequence[Rule | None],
        *,
        outputs: Sequence[str] = ("y",),
        view: bool = False,
        linear: bool = False,
        multiple_views: bool = False,
        variable_outputs: bool = False,
        rows: bool = False,
        lies: Callable[..., Any] | None = None,
        gaps: bool = False,
        takes_half: bool = False,
        samples: Sequence[Callable[..., Any]] = (),
        quick: Callable[..., Any] | None = None,
        few: Callable[..., Any] | None = None,
        writes: Callable[..., None] | None = None,
        by_numbers: bool = False,
        listed: bool = True,
    ) -> None:
        self.name = name
        self.quick, self.few = quick, few
        self.writes = writes
        self.by_numbers = by_numbers
        self.samples = tuple(samples)
        self.forward = forward
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.view = view
        self.linear = linear
        self.takes_half = takes_half or view
        self.rows = rows
        self.lies = None if lies is None else _CompiledRule(lies)
        self.gaps = gaps
        self.multiple_views = multiple_views
        self.variadic = self.inputs[0].startswith("*")
        self.rules = tuple(None if rule is None else _CompiledRule(rule) for rule in vjp)
        check_names(name, self.inputs, self.outputs, self._static_names())
        self._plans: dict[tuple[int, int], _Plan] = {}
        rules = [rule for rule in self.rules if rule is not None]
        named = {name for rule in rules for name in rule.parameters}
        self.node_class: Any = make_node_class(
            node,
            PrimitiveNode,
            named.intersection((*self.inputs, *self.outputs)),
            primitive=self,
            num_outputs=len(self.outputs),
            gives_views=view,
        )
        self._node_name = node
        self._node_classes: dict[int, Any] = {len(self.outputs): self.node_class}
        self.variable_outputs = variable_outputs
        if not listed:
            return
        enter(self)

    def _static_names(self) -> list[str]:
        """Return the names of the parameters that are no inputs, as far as they can be known."""
        try:
            named = list(inspect.signature(self.forward).parameters.values())
        except ValueError:  # of a function of NumPy's, say
            return []
        behind = [] if self.variadic else named[len(self.inputs) :]
        behind += [each for each in named if each.kind is each.KEYWORD_ONLY and each not in behind]
        return [
            each.name for each in behind if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]

    def rules_for(self, count: int) -> Sequence[_CompiledRule | None]:
        """Return the rule of each of `count` inputs."""
        return self.rules * count if self.variadic else self.rules

    def input_names(self, count: int) -> Sequence[str]:
        """Return the name of each of `count` inputs."""
        if self.variadic:
            return [f"{self.inputs[0][1:]}{position}" for position in range(count)]
        return self.inputs

    def saved_for(self, needs: int, count: int) -> tuple[tuple[str, int], ...]:
        """Return what the rules of the needed inputs name: ("input", i) and ("output", i)."""
        return self.plan(needs, count).saved

    def plan(self, needs: int, count: int) -> _Plan:
        """Return what the backward pass takes for the inputs whose bits are set in `needs`."""
        plan = self._plans.get((needs, count))
        if plan is None:
            rules = [
                (position, rule.function, rule.parameters)
                for position, rule in enumerate(self.rules_for(count))
                if (needs >> position) & 1 and rule is not None
            ]
            named = {name for _, _, parameters in rules for name in parameters}
            input_names = self.input_names(count)
            saved = [
                (("input", position), name)
                for position, name in enumerate(input_names)
                if "inputs" in named or name in named
            ] + [
                (("output", position), name)
                for position, name in enumerate(self.outputs)
                if name in named
            ]
            plan = self._plans[(needs, count)] = _Plan(
                rules=tuple(rules),
                saved=tuple([place for place, _ in saved]),
                names=tuple([name for _, name in saved]),
                shapes=tuple(
                    [
                        (f"{name}_shape", position)
                        for position, name in enumerate(input_names)
                        if f"{name}_shape" in named
                    ]
                ),
                of_all=not named.isdisjoint(("inputs", "shapes")),
                lies=tuple(
                    [
                        (f"{name}_lies", position)
                        for position, name in enumerate(input_names)
                        if f"{name}_lies" in named
                    ]
                ),
                held=next(iter(named & _HELD - {*input_names, *self.outputs}), ""),
            )
        return plan

    def apply(self, *inputs: Tensor, **parameters: Any) -> Any:
        """Run the operation on tensors and record a node if one is needed."""
        arrays: list[Any] = []
        needs = False
        for tensor in inputs:
            if tensor._base is not None:
                refresh_view(tensor)
            if tensor._edge is not NO_EDGE:
                needs = True
            arrays.append(tensor._array)
        if modes.trace is None:
            # Where operands may differ in dtype, the primitive takes float16 as it is.
            if self.takes_half or (
                arrays[0].dtype not in HALVES
                and not (parameters and parameters.get("dtype") is HALF)
            ):
                result = self.forward(*arrays, **parameters)
            else:
                result = self._forward_of_halves(*arrays, **parameters)
        else:
            result = modes.trace.call(self, arrays, parameters)
        if isinstance(result, (tuple, list)):
            return self._wrap_all(inputs, result, parameters)
        output = view_of(inputs[0], result) if self.view else wrap(result)
        if interceptors and modes.dual is not None:
            self._hand_on_tangents(inputs, (output,), parameters)
        elif needs and modes.grad:
            self._record(inputs, (output,), parameters)
        if interceptors and modes.steps is not None:
            self._note(inputs, parameters, (output,), several=False)
        return output

    def _note(
        self,
        inputs: Sequence[Tensor],
        parameters: dict[str, Any],
        outputs: Sequence[Tensor],
        *,
        several: bool,
    ) -> None:
        """Tell who notes the steps of a call of this one."""
        arrays = [tensor._array for tensor in inputs]
        run = self.function_for(arrays, parameters)
        modes.steps.note(self, inputs, parameters, outputs, run, several)

    def function_for(self, arrays: Sequence[Any], parameters: dict[str, Any]) -> Callable[..., Any]:
        """Return the forward for parameters, and for arrays that lie as these do."""
        dtype = arrays[0].dtype
        is_half = dtype in HALVES or parameters.get("dtype") is HALF
        found: Callable[..., Any] | None = None
        few = self.few is not None and dtype != HALF
        if few and all(
            array.dtype == dtype and array.flags.c_contiguous and 0 < array.size <= FEW_ELEMENTS
            for array in arrays
        ):
            found = self.few(*arrays, **parameters)  # type: ignore[misc]
        if found is None and self.quick is not None and (self.takes_half or not is_half):
            found = self.quick(*arrays, **parameters)
        if found is not None:
            return found
        forward = self.forward
        if not self.takes_half and is_half:
            forward = self._forward_of_halves
        return functools.partial(forward, **parameters) if parameters else forward

    def _forward_of_halves(self, *arrays: Any, **parameters: Any) -> Any:
        """Run the forward in float32; what it gives is rounded if no operand is wider."""
        wanted = parameters.get("dtype")
        if wanted is None:
            rounds = all(array.dtype == HALF for array in arrays if array.dtype.kind in "fc")
        else:
            rounds = wanted == HALF
            parameters["dtype"] = wide_dtype(wanted)
        known = {name: widened(value) for name, value in parameters.items()}
        result = self.forward(*[widened(array) for array in arrays], **known)
        if isinstance(result, (tuple, list)):
            return type(result)([self._rounded(array, rounds) for array in result])
        return self._rounded(result, rounds)

    @staticmethod
    def _rounded(array: Any, rounds: bool) -> Any:
        return narrowed(array) if rounds and array.dtype == WIDE else array

    def _wrap_all(
        self, inputs: Sequence[Tensor], arrays: Sequence[Any], parameters: dict[str, Any]
    ) -> tuple[Tensor, ...]:
        """Return several results as tensors, with a node if one is needed."""
        outputs: list[Tensor]
        if self.view:
            outputs = [view_of(inputs[0], array) for array in arrays]
            if self.multiple_views and modes.grad and inputs[0]._view_origin != "inference":
                for output in outputs:
                    output._view_origin = "multiple"
        else:
            outputs = [wrap(array) for array in arrays]
        if interceptors and modes.dual is not None:
            self._hand_on_tangents(inputs, outputs, parameters)
        elif modes.grad:
            self._record(inputs, outputs, parameters)
        if interceptors and modes.steps is not None:
            self._note(inputs, parameters, outputs, several=True)
        return tuple(outputs)

    def _hand_on_tangents(
        self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], parameters: dict[str, Any]
    ) -> None:
        """Let the open level of forward mode record and differentiate a call."""
        modes.dual.record(
            lambda inputs, outputs, moving: self._record(inputs, outputs, parameters, moving),
            inputs,
            outputs,
            (lambda tangent: self.apply(tangent, **parameters)) if self.view else None,
        )

    def _record(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        parameters: dict[str, Any],
        moving: int = 0,
    ) -> None:
        """Attach a node to the outputs if an input requires grad and a gradient could flow.

        The inputs whose bits are set in `moving` have a tangent, and need the node, too.
        """
        needs = moving
        for position, tensor in enumerate(inputs):
            if tensor._edge is not NO_EDGE:
                needs |= 1 << position
        if not needs:
            return
        if not any(output._array.dtype.kind in "fc" for output in outputs):
            return
        cls = self.node_class
        if self.variable_outputs:
            cls = self._node_classes.get(len(outputs))
            if cls is None:
                cls = self._node_classes[len(outputs)] = make_node_class(
                    self._node_name,
                    PrimitiveNode,
                    primitive=self,
                    num_outputs=len(outputs),
                    gives_views=self.view,
                )
        call = Call(self, needs, parameters, inputs, outputs)
        reached = tuple([i for i, out in enumerate(outputs) if out._array.dtype.kind in "fc"])
        node = attach_for(call.saved_places, None, reached)(cls, call, inputs, outputs)
        if interceptors:
            note_node(node)
            if modes.saved_hooks:
                kept = [
                    inputs[position] if kind == "input" else outputs[position]
                    for kind, position in self.saved_for(needs, len(inputs))
                ]
                pack_saved(node, kept)


def at_run_time(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of an array one that waits for the numbers; a decorator.

    It checks them, or changes some: the result has the array's shape and dtype.
    In a traced function there are none yet: there it is recorded, and runs in every call.
    """
    primitive = Primitive(
        function.__name__.strip("_"),
        "NotImplemented",
        function,
        ["array"],
        [None],
        listed=False,
    )

    @functools.wraps(function)
    def run(array: Any, **parameters: Any) -> Any:
        if type(array) is Traced:
            known = array.storage.recorder.known(array)
            if known is None:
                return modes.trace.check(primitive, array, parameters)
            array = known
        return function(array, **parameters)

    return run
