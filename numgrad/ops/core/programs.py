"""Straight-line Python for calls: the steps of a call, written out once as source.

What a step needs is known when its call was seen: which arrays it takes, what has to be wrapped as
a tensor, and where a node is recorded, with which edges and what is saved. `record_lines` is the
one place that says how a node is made; calls that take the long way run what it says, too
(`attach_for`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS, KEPT_LAYOUTS
from numgrad.codegen.define import define
from numgrad.graph.accumulate import gradient_edge
from numgrad.graph.modes import call_interceptors, interceptors, modes
from numgrad.graph.node import FREED, FROM_FIRST_OUTPUTS, Node, next_sequence
from numgrad.graph.tensor import NO_EDGE, NOWHERE, Tensor, new_counter
from numgrad.ops.core.steps import Step, Steps, note_steps

__all__ = [
    "Gradients",
    "RecordedNode",
    "Saved",
    "SharedCall",
    "attach_for",
    "attach_plain",
    "compile_call",
]

# What is saved: ("input", i), ("output", i), ("number", i) for an operand that is no tensor, or
# ("held", name) for a parameter that counts as saved.
Saved = tuple[tuple[str, Any], ...]
_NAMES = {
    "__name__": __name__,
    "FREED": FREED,
    "FIRST": FROM_FIRST_OUTPUTS,
    "NOWHERE": NOWHERE,
    "NO_EDGE": NO_EDGE,
    "Tensor": Tensor,
    "gradient_edge": gradient_edge,
    "interceptors": interceptors,
    "modes": modes,
    "new": object.__new__,
    "new_counter": new_counter,
    "next_sequence": next_sequence,
}


def record_lines(
    node: str, node_class: str, call: str, edges: list[str], saved: list[str]
) -> list[str]:
    """Return the lines that make a node.

    Parameters
    ----------
    node, node_class, call : str
        The names of the node that is made, of its class, and of what its kind of calls share.
    edges : list of str
        What gives ``node.targets`` and ``node.numbers``.
    saved : list of str
        For each value that is saved its array, version counter and version.
    """
    return [
        f"{node} = new({node_class})",
        f"{node}.targets = {edges[0]}",
        f"{node}.numbers = {edges[1]}",
        f"{node}.sequence = next_sequence()",
        f"{node}.attached = None",
        f"{node}.call = {call}",
        f"{node}.saved = ({', '.join(saved)}{',' if saved else ''})",
    ]


@lru_cache(1 << 10)
def attach_for(
    saved: Saved, tensors: tuple[bool, ...] | None, outputs: tuple[int, ...]
) -> Callable[..., Any]:
    """Return ``attach(node_class, call, inputs, outputs)``, which makes a node and returns it.

    Parameters
    ----------
    saved : tuple
        What the node saves.
    tensors : tuple of bool, optional
        For each operand that has an edge whether it is a tensor; by default any number of tensors.
    outputs : tuple of int
        Which outputs hang on the node.
    """
    lines = []
    if tensors is None:
        lines.append("edges = [gradient_edge(each) for each in inputs]")
    else:
        each = [f"gradient_edge(inputs[{i}])" if t else "NO_EDGE" for i, t in enumerate(tensors)]
        lines.append(f"edges = [{', '.join(each)}]")
    values = []
    for number, (kind, at) in enumerate(saved):
        if kind == "held":
            values.append(f"{at!r}, None, 0")
        elif kind == "number":
            values.append(f"inputs[{at}], None, 0")
        else:
            lines += [f"t{number} = {kind}s[{at}]", f"c{number} = t{number}._counter"]
            values.append(f"t{number}._array, c{number}, c{number}[0]")
    lines += record_lines(
        "node",
        "node_class",
        "call",
        ["tuple([edge[0] for edge in edges])", "tuple([edge[1] for edge in edges])"],
        values,
    )
    lines += [f"outputs[{number}]._edge = (node, {number})" for number in outputs]
    return _define("attach", "node_class, call, inputs, outputs", [*lines, "return node"], {})


def attach_plain(primitive: Any, plan: Any, kinds: str, needs: int) -> Callable[..., Any]:
    """Return ``attach(*operands, tensor)`` for a result with the shape and dtype of its operands.

    Parameters
    ----------
    primitive, plan
        An elementwise primitive, and its plan for the operands that require grad.
    kinds : str
        For each operand ``t``, a tensor, or ``n``, a number.
    needs : int
        Bit i is set if operand i requires grad.
    """
    operands = [f"t{position}" for position in range(len(kinds))]
    writer = _CallWriter((), [], ())
    edges = []
    for position, kind in enumerate(kinds[: primitive.tensor_count]):
        value = _Value(operands[position], None, True, kind == "t" and bool(needs >> position & 1))
        edges.append(writer.edge(value))
    saved = []
    for kind, position in plan.saved_places:
        name = "tensor" if kind == "output" else operands[position]
        if kind == "number":
            saved.append(f"{name}, None, 0")
        else:
            writer.lines.append(f"counter_{name} = {name}._counter")
            saved.append(f"{name}._array, counter_{name}, counter_{name}[0]")
    lines = record_lines("node", "node_class", "plan", _edges_source(edges), saved)
    namespace = {"node_class": primitive.node_class, "plan": plan}
    lines = [*writer.lines, *lines, "tensor._edge = (node, 0)"]
    return _define("attach", ", ".join([*operands, "tensor"]), lines, namespace)


def _edges_source(edges: Sequence[tuple[str, str]]) -> list[str]:
    """Return what gives ``node.targets`` and ``node.numbers``, for the source of each edge."""
    targets = "".join([f"{target}, " for target, _ in edges])
    numbers = "".join([f"{number}, " for _, number in edges])
    open_ones = [number for _, number in edges if number != "0"]
    count = len(edges)
    if count >= len(FROM_FIRST_OUTPUTS) or any(number.isdigit() for number in open_ones):
        return [f"({targets})", f"({numbers})"]
    if not open_ones:
        return [f"({targets})", f"FIRST[{count}]"]
    return [f"({targets})", f"({numbers}) if {' or '.join(open_ones)} else FIRST[{count}]"]


def _define(
    name: str, parameters: str, lines: Sequence[str], namespace: dict[str, Any]
) -> Callable[..., Any]:
    source = "\n".join([f"def {name}({parameters}):", *(f"    {line}" for line in lines), ""])
    return define(name, source, f"{name} {crc32(source.encode()):x}", {**_NAMES, **namespace})


class _Value:
    """A tensor as generated source knows it: the names of its parts.

    Attributes
    ----------
    tensor : str
        Its name, if there is such a tensor at all.
    root : _Value
        What its memory belongs to: of what is no view, itself.
    is_argument, requires : bool
        Whether it is an argument, and requires grad.
    array, counter, base : str
        The names of its parts, once they are known.
    edge : tuple of str, str or None
        Its node and which output it is, if that is known; otherwise the name of its edge; None if
        it does not require grad.
    """

    __slots__ = ("_root", "array", "base", "counter", "edge", "is_argument", "requires", "tensor")

    def __init__(self, tensor: str, root: _Value | None, is_argument: bool, requires: bool) -> None:
        self.tensor = tensor
        self._root = root
        self.is_argument = is_argument
        self.requires = requires
        self.array = self.counter = self.base = ""
        self.edge: Any = None

    @property
    def root(self) -> _Value:
        return self if self._root is None else self._root


class _CallWriter:
    """Writes the source of a call that was seen."""

    def __init__(self, arguments: Sequence[Any], steps: list[Step], results: Sequence[Any]) -> None:
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self.values: dict[int, _Value] = {}
        self.results = {id(result) for result in results}
        self.reads_mode = False
        for position, argument in enumerate(arguments):
            if isinstance(argument, Tensor):
                self.values[id(argument)] = _Value(
                    f"t{position}", None, True, argument._edge is not NO_EDGE
                )
        self.bases = {  # fresh tensors that views are made of
            id(step.operands[0]) for step in steps if step.primitive.view
        }

    def part(self, value: _Value, name: str) -> str:
        """Return the name of a part of an argument, which is looked up once."""
        known: str = getattr(value, name)
        if not known:
            known = f"{name}_{value.tensor}"
            setattr(value, name, known)
            self.lines.append(f"{known} = {value.tensor}._{name}")
            if name == "base":
                self.lines.append(f"if {known} is None: {known} = {value.tensor}")
        return known

    def edge(self, value: _Value) -> tuple[str, str]:
        """Return what gives the node that a tensor's gradient goes to, and its number."""
        if not value.requires:
            return "None", "0"
        if value.edge is None:
            name = f"edge_{value.tensor}"
            self.lines += [
                f"{name} = {value.tensor}._edge",
                f"if {name} is None: {name} = gradient_edge({value.tensor})",
            ]
            value.edge = (f"{name}[0]", f"{name}[1]")
        found: tuple[str, str] = value.edge
        return found

    def step(self, number: int, step: Step, names: Sequence[str] | None) -> bool:
        """Write what one step does; return whether that can be written."""
        operands: list[_Value | None] = []
        arguments = []
        for position, operand in enumerate(step.operands):
            if not isinstance(operand, Tensor):
                operands.append(None)
                if names is None:
                    arguments.append(f"k{number}_{position}")
                    self.namespace[arguments[-1]] = operand
                else:
                    arguments.append(names[position])
                continue
            value = self.values.get(id(operand) if names is None else -1 - position)
            if value is None:
                return False
            operands.append(value)
            arguments.append(self.part(value, "array"))
        if not step.outputs:
            return False
        self._compute(number, step, arguments)
        outputs = []
        for index, output in enumerate(step.outputs):
            value = self._wrap(number, index, step, operands, output)
            self.values[id(output)] = value
            outputs.append(value)
        node = next(
            (
                output._edge[0]
                for output in step.outputs
                if output._edge is not None and output._edge[0] is not None
            ),
            None,
        )
        if node is not None:
            if getattr(node, "call", None) is None:  # no node of the primitive's
                return False
            self._record(number, step, operands, outputs, arguments, node)
        return True

    def _compute(self, number: int, step: Step, arguments: Sequence[str]) -> None:
        """Write what computes the arrays of a step's outputs."""
        arrays = [f"x{number}_{index}" for index in range(len(step.outputs))]
        target = f"[{', '.join(arrays)}]" if step.several else arrays[0]
        self.namespace[f"run{number}"] = step.run
        self.lines.append(f"{target} = run{number}({', '.join(arguments)})")

    def _wrap(
        self, number: int, index: int, step: Step, operands: Sequence[Any], output: Tensor
    ) -> _Value:
        """Write how an output becomes a tensor, if anybody sees it."""
        view = step.primitive.view
        name = f"r{number}_{index}"
        value = _Value(name, operands[0].root if view else None, False, False)
        value.array = f"x{number}_{index}"
        seen = id(output) in self.results
        if view:
            value.counter = self._counter(value.root)
            if not seen:
                return value
        elif not seen and id(output) not in self.bases:
            value.counter = f"c{number}_{index}"
            self.lines.append(f"{value.counter} = [0]")
            return value
        self.lines += [f"{name} = new(Tensor)", f"{name}._array = {value.array}"]
        if not view:
            value.counter = f"c{number}_{index}"
            self.lines.append(
                f"{name}._counter = {value.counter} = new_counter() if interceptors else [0]"
            )
            value.base = name
            return value
        root = value.root
        origin = f"{root.tensor}._view_origin" if root.is_argument else "''"
        self.lines += [
            f"{name}._counter = {value.counter}",
            f"{name}._base = {self.part(root, 'base') if root.is_argument else root.tensor}",
            f"try: {name}._view_version = {value.counter}[0]",
            "except RuntimeError: return None  # an inference tensor has no version",
            f"origin = {origin}",
            f"if origin: {name}._view_origin = origin",
            "if not modes.grad:",
            f"    if origin != 'inference': {name}._view_origin = 'no_grad'",
            f"    if {name}._base._edge is not NO_EDGE: {name}._edge = NOWHERE",
        ]
        if step.primitive.multiple_views:
            self.lines.append(f"elif origin != 'inference': {name}._view_origin = 'multiple'")
        return value

    def _counter(self, root: _Value) -> str:
        return self.part(root, "counter") if root.is_argument else root.counter

    def _record(
        self,
        number: int,
        step: Step,
        operands: Sequence[Any],
        outputs: Sequence[_Value],
        arguments: Sequence[str],
        node: Any,
    ) -> None:
        """Write how the node of a step is recorded."""
        name = f"node{number}"
        node.call.remember()
        self.namespace |= {f"class{number}": type(node), f"call{number}": node.call}
        with_edges = operands[: len(node.targets)]
        edges = [("None", "0") if each is None else self.edge(each) for each in with_edges]
        saved = []
        for kind, at in self.places(node):
            if kind == "held":
                saved.append(f"{at!r}, None, 0")
            elif kind == "number":
                self.namespace[f"convert{number}"] = step.primitive.number_converter(at, step)
                saved.append(f"convert{number}({arguments[at]}), None, 0")
            else:
                saved.append(self._saved(operands[at] if kind == "input" else outputs[at]))
        made = (name, f"class{number}", f"call{number}")
        self.lines += record_lines(*made, _edges_source(edges), saved)
        for index, (output, value) in enumerate(zip(step.outputs, outputs, strict=True)):
            if output._edge is None or output._edge[0] is not node:
                continue
            value.requires = True
            value.edge = (name, str(index))
            if id(output) in self.results or (id(output) in self.bases and not step.primitive.view):
                self.lines.append(f"{value.tensor}._edge = ({name}, {index})")

    def places(self, node: Any) -> Saved:
        """Return what a node saves."""
        places: Saved = node.call.saved_places
        return places

    def _saved(self, value: _Value) -> str:
        """Return what is saved of a tensor: array, version counter and version."""
        counter = self.part(value, "counter") if value.is_argument else value.counter
        return f"{self.part(value, 'array')}, {counter}, {counter}[0]"


def compile_call(
    arguments: Sequence[Any],
    steps: Steps,
    result: Any,
    *,
    sequence: bool = False,
    in_order: bool = False,
) -> Callable[..., Any] | None:
    """Return a function of the arguments that does what the steps did; None if there is none.

    Where an interceptor matters, that function returns None, too: then the long way is to be taken.

    Parameters
    ----------
    arguments : sequence of Tensor or number
        What the steps began with.
    steps : Steps
        What they were.
    result : Tensor, or tuple of Tensor
        What the call returned.
    sequence : bool
        Whether the arguments are given as one.
    in_order : bool
        Whether the one step there is takes just the arguments: then a tensor may be there twice,
        and numbers are arguments, too.
    """
    if not steps.is_complete():
        return None
    results = result if isinstance(result, tuple) else (result,)
    writer = _CallWriter(arguments, steps.steps, results)
    names = None
    if in_order:
        names = [f"t{position}" for position in range(len(arguments))]
        for position, argument in enumerate(arguments):
            if isinstance(argument, Tensor):
                writer.values[-1 - position] = _Value(
                    names[position], None, True, argument._edge is not NO_EDGE
                )
    for number, step in enumerate(steps.steps):
        if not writer.step(number, step, names):
            return None
    found = [writer.values.get(id(each)) for each in results]
    if any(value is None for value in found):
        return None
    returned = ", ".join([value.tensor for value in found if value is not None])
    if isinstance(result, tuple):
        returned = f"({returned}{',' if len(found) == 1 else ''})"
        if type(result) is not tuple:
            writer.namespace["Returned"] = type(result)
            returned = (
                f"Returned{returned}" if hasattr(result, "_fields") else f"Returned({returned})"
            )
    lines = writer.lines
    if any(step.primitive.view for step in steps.steps):
        lines = ["if interceptors and modes.inference: return None", *lines]
    parameters = ", ".join([f"t{position}" for position in range(len(arguments))])
    if sequence:
        lines = [f"[{parameters}] = tensors", *lines]
        parameters = "tensors"
    return _define("call", parameters, [*lines, f"return {returned}"], writer.namespace)


# What `Node.run_arrays` returns.
Gradients = tuple[Sequence[Any], Sequence[bool | None]]


class SharedCall:
    """What the nodes of one kind of call share, and what runs their rules.

    Attributes
    ----------
    saved_places : tuple
        What they save; see `Saved`.
    programs : dict or None
        Of calls that are remembered: for how gradients lie in memory, what runs the rules on them.
    """

    __slots__ = ("programs",)

    programs: dict[Any, Any] | None
    saved_places: Saved

    def remember(self) -> None:
        """Let what runs the rules be remembered."""
        if self.programs is None:
            self.programs = {}

    def forgotten(self) -> SharedCall:
        """Return the same, for a node that is unlike others of its kind."""
        call = copy(self)
        call.programs = None
        return call

    def run(self, node: RecordedNode, gradients: Sequence[Any]) -> Gradients:
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
            return _note_rules(programs, key, node, gradients)
        found: Gradients = program(node, gradients)
        return found


class RecordedNode(Node):
    """The node of a primitive."""

    __slots__ = ("call",)

    call: Any  # a SharedCall, or a plan

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
        """Run the rules on arrays, and return tensors and whose memory these are."""
        raise NotImplementedError


def _note_rules(
    programs: dict[Any, Any], key: Any, node: RecordedNode, gradients: Sequence[Any]
) -> Gradients:
    """Run the rules of a node, and remember what they came to."""
    saved = node.saved
    # An array that is there twice need not be the next time: each is told by what it is.
    met: set[int] = set()
    gradients = [_another_if_met(gradient, met) for gradient in gradients]
    if saved is not None:
        node.saved = tuple([_another_if_met(value, met) for value in saved])
    try:
        (results, owned), steps = note_steps(node.rules_on, gradients)
        program = _compile_rules(node, gradients, steps, results, owned)
    finally:
        node.saved = saved
    programs[key] = program or type(node).run_rules
    return [None if each is None else each._array for each in results], owned


def _another_if_met(value: Any, met: set[int]) -> Any:
    """Return an array, or another one over its memory if it was met before."""
    if type(value) is not np.ndarray:
        return value
    if id(value) in met:
        value = value[...]
    met.add(id(value))
    return value


def _compile_rules(
    node: Any, gradients: Sequence[Any], steps: Steps, results: Sequence[Any], owned: Sequence[Any]
) -> Callable[..., Any] | None:
    """Return ``run(node, gradients)``, which does on arrays what rules did; None if there is none.

    Parameters
    ----------
    node : Node
        Whose rules they were.
    gradients : sequence of array or None
        What they began with, beside what the node saved.
    steps : Steps
        What they did.
    results : sequence of Tensor or None
        What they returned.
    owned : sequence of bool
        Which of the results are the receiver's to write to.
    """
    if not steps.is_complete():
        return None
    lines: list[str] = []
    names: dict[int, str] = {}
    for position, gradient in enumerate(gradients):
        if gradient is not None:
            names[id(gradient)] = f"g{position}"
            lines.append(f"g{position} = gradients[{position}]")
    saved = node.saved
    if saved:
        lines += ["saved = node.saved", "if saved is None: raise RuntimeError(FREED)"]
        unpacked, stale = [], []
        for index in range(len(saved) // 3):
            unpacked += [f"a{index}", f"c{index}", f"v{index}"]
            if saved[3 * index + 1] is not None:
                names[id(saved[3 * index])] = f"a{index}"
                stale.append(f"c{index}[0] != v{index}")
        lines.append(f"{', '.join(unpacked)} = saved")
        if stale:
            lines.append(f"if {' or '.join(stale)}: return node.run_rules(gradients)")
    namespace: dict[str, Any] = {"owned": tuple(owned)}
    constants = {
        id(each._array): each._array for each in steps.constants if each._array.size <= FEW_ELEMENTS
    }
    for number, step in enumerate(steps.steps):
        arguments = []
        for position, operand in enumerate(step.operands):
            if isinstance(operand, Tensor):
                known = id(step.read[position])
                name = names.get(known, "")
                if not name and known in constants:
                    name = f"k{number}_{position}"
                    namespace[name] = constants[known]
            elif isinstance(operand, str):  # what the node saved of a number
                name = operand
            else:
                name = f"k{number}_{position}"
                namespace[name] = operand
            arguments.append(name)
        if "" in arguments:
            return None
        outputs = [f"x{number}_{index}" for index in range(len(step.outputs))]
        target = f"[{', '.join(outputs)}]" if step.several else outputs[0]
        namespace[f"run{number}"] = step.run
        lines.append(f"{target} = run{number}({', '.join(arguments)})")
        for array, name in zip(step.written, outputs, strict=True):
            names[id(array)] = name
    for number, each in enumerate(results):
        given = 0 if each is None else id(each._array)
        if given in constants and given not in names:  # a copy, which may be written to
            namespace[f"k{number}"] = constants[given]
            names[given] = f"x_{number}"
            lines.append(f"x_{number} = k{number}.copy('K')")
    found = ["None" if each is None else names.get(id(each._array), "") for each in results]
    if "" in found:
        return None
    lines.append(f"return ({', '.join(found)},), owned")
    return _define("run", "node, gradients", lines, namespace)
