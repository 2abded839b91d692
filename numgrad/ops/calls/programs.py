"""Straight-line Python for calls: the steps of a call, written out once as source.

What a step needs is known when its call was seen: which arrays it takes, what has to be wrapped as
a tensor, and where a node is recorded, with which edges and what is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from numgrad.base.dtypes import defaults
from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.kinds import kind_for
from numgrad.graph.tensor import NO_EDGE, Tensor, wrap
from numgrad.ops.calls.node_source import (
    Saved,
    are_constants,
    define_lines,
    edge_lines,
    edges_source,
    pack_lines,
    record_lines,
)
from numgrad.ops.calls.steps import READING, Step, Steps, arrays_in

__all__ = ["CallWriter", "Value", "compile_call", "default_dtype_lines", "number_source"]


_OF_ANY = {"_array", "_counter", "_kind"}  # what `wrap` gives a tensor, and keys note of it
_DETACHED = {*_OF_ANY, "_owner"}


class Value:
    """A tensor as generated source knows it: the names of its parts.

    Attributes
    ----------
    tensor : str
        Its name, if there is such a tensor at all.
    root : Value
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

    def __init__(self, tensor: str, root: Value | None, is_argument: bool, requires: bool) -> None:
        self.tensor = tensor
        self._root = root
        self.is_argument = is_argument
        self.requires = requires
        self.array = self.counter = self.base = ""
        self.edge: Any = None

    @property
    def root(self) -> Value:
        return self if self._root is None else self._root


def number_source(value: Any, name_of: Callable[[Any], str]) -> str:
    """Return what gives a parameter that is an array, or holds some; "" if one has no name."""
    if isinstance(value, (tuple, list)):
        parts = ["None" if each is None else name_of(each) for each in value]
        return f"({', '.join(parts)},)" if all(parts) else ""
    return name_of(value)


class CallWriter:
    """Writes the source of a call that was seen."""

    def __init__(self, arguments: Sequence[Any], steps: Steps, results: Sequence[Any]) -> None:
        self.lines: list[str] = []
        self.saved: dict[str, list[str]] = {}  # of nodes; see `pack_lines`
        self.namespace: dict[str, Any] = {}
        self.values: dict[int, Value] = {}
        self.results = {id(result) for result in results}
        self.counted = steps.counted
        # Of few numbers; what a result shows of one belongs to whoever gets the result.
        self.constants = {
            id(each._array)
            for each in steps.constants
            if each._array.size <= FEW_ELEMENTS
            and not any(np.may_share_memory(each._array, result._array) for result in results)
        }
        # Of those that are results each call makes another one.
        self.made_anew = {
            id(each._array)
            for each in steps.constants
            if each._array.size <= FEW_ELEMENTS
            and [np.may_share_memory(each._array, r._array) for r in results].count(True) == 1
        }
        # Who has one of these shares memory whose writes are counted: it is a view in all but name.
        fresh = [step for step in steps.steps if not step.primitive.view]
        outputs = [each for step in fresh for each in step.outputs]
        tensors = [each for each in (*arguments, *outputs) if isinstance(each, Tensor)]
        self.counters = {id(each._counter): id(each) for each in tensors}
        self.arrays: dict[int, str] = {}  # what was read, or computed: the names of arrays
        # Whose array it is, None if it is that of two: they need not have one the next time.
        self.holders: dict[int, Value | None] = {}
        for position, argument in enumerate(arguments):
            if isinstance(argument, Tensor):
                known = id(argument) in self.values
                value = Value(f"t{position}", None, True, argument._edge is not NO_EDGE)
                self.values[id(argument)] = value
                place = id(argument._array)
                self.holders[place] = value if known or place not in self.holders else None
        self.bases = {  # fresh tensors that views are made of
            id(step.operands[0]) for step in steps.steps if step.primitive.view
        }

    def take_in_order(
        self, arguments: Sequence[Any], in_order: Sequence[int] | None
    ) -> list[str] | None:
        """Return the names of the arguments that the one step takes, if it takes just these."""
        if in_order is None:
            return None
        names = [f"t{position}" for position in in_order]
        for place, position in enumerate(in_order):
            argument = arguments[position]
            if isinstance(argument, Tensor):
                requires = argument._edge is not NO_EDGE
                self.values[-1 - place] = Value(names[place], None, True, requires)
        return names

    def array(self, array: Any) -> str:
        """Return the name of an array, "" if it has none."""
        holder = self.holders.get(id(array))
        if holder is not None and id(array) not in self.arrays:
            self.arrays[id(array)] = self.part(holder, "array")
        return self.arrays.get(id(array), "")

    def part(self, value: Value, name: str) -> str:
        """Return the name of a part of an argument, which is looked up once."""
        known: str = getattr(value, name)
        if not known:
            known = f"{name}_{value.tensor}"
            setattr(value, name, known)
            self.lines.append(f"{known} = {value.tensor}._{name}")
            if name == "base":
                self.lines.append(f"if {known} is None: {known} = {value.tensor}")
        return known

    def given(self, value: Value) -> str:
        """Return what gives the tensor that hooks are handed, if it is an argument."""
        return value.tensor if value.is_argument else ""

    def edge(self, value: Value) -> tuple[str, str]:
        """Return what gives the node that a tensor's gradient goes to, and its number."""
        if not value.requires:
            return "None", "0"
        if value.edge is None:
            self.lines += edge_lines(value.tensor)
            value.edge = (f"edge_{value.tensor}[0]", f"edge_{value.tensor}[1]")
        found: tuple[str, str] = value.edge
        return found

    def step(self, number: int, step: Step, names: Sequence[str] | None) -> bool:
        """Write what one step does; return whether that can be written."""
        operands: list[Value | None] = []
        arguments = []
        if step.primitive is READING:
            return self._read(number, step)
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
            if value is None and names is None:
                value = self.made(operand)
            if value is None:
                return False
            operands.append(value)
            own = self.arrays.get(id(step.read[position]))
            if own and not value.is_argument:  # its numbers may lie elsewhere by now
                value.array = own
            arguments.append(self.part(value, "array"))
        if not step.outputs:
            return False
        fixed = step.parameters.items() if names is None else ()
        if any(id(value) in self.holders for key, value in fixed if key not in step.numbers):
            return False
        sources = {name: number_source(step.parameters[name], self.array) for name in step.numbers}
        if "" in sources.values():
            return False
        self._compute(number, step, [*arguments, *[f"{k}={v}" for k, v in sources.items()]])
        self.arrays |= {id(array): f"x{number}_{index}" for index, array in enumerate(step.written)}
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
            if any(id(array) in self.counted for array in step.read):
                return False
            held = [self.values.get(id(tensor)) for tensor in step.held]
            if None in held:
                return False
            self._record(number, step, operands, outputs, arguments, node, held)
            if sources:
                self._renew(number, step, sources, node)
        return True

    def made(self, tensor: Tensor) -> Value | None:
        """Return a tensor that no step returned: of an array that was read, or a constant."""
        array, place = tensor._array, len(self.values)
        name = self.array(array)
        if not name and id(array) in self.constants:
            name = f"constant{place}"
            self.namespace[name] = array.copy("K")
        if not name and id(array) in self.made_anew and id(tensor) in self.results:
            name = self._copied(array, f"constant{place}")
        if name and id(tensor._counter) in self.counters:
            return self._detached(tensor, name)
        if not name or not vars(tensor).keys() <= _OF_ANY:
            return None
        value = Value(f"made{place}", None, False, False)
        value.array = name
        if id(tensor) in self.bases or id(tensor) in self.results:
            value.counter = f"c_{value.tensor}"
            self.namespace["wrap"] = wrap
            self.lines.append(f"{value.tensor} = wrap({name})")
            self.lines.append(f"{value.counter} = {value.tensor}._counter")
        self.values[id(tensor)] = value
        self.counters[id(tensor._counter)] = id(tensor)
        return value

    def _detached(self, tensor: Tensor, array: str) -> Value | None:
        """Return a tensor without history whose writes count with another's, if nobody sees it."""
        owner = self.values.get(self.counters[id(tensor._counter)])
        is_seen = id(tensor) in self.bases or id(tensor) in self.results
        if owner is None or is_seen or not vars(tensor).keys() <= _DETACHED:
            return None
        value = Value("", None, False, False)
        value.array, value.counter = array, self._counter(owner.root)
        self.values[id(tensor)] = value
        return value

    def _copied(self, array: Any, name: str) -> str:
        """Write what makes an array that was made of no tensor; "" if no copy lies as it does."""
        copy = array.copy("K")
        for order in "CK":
            if copy.strides == array.strides == copy.copy(order).strides:
                self.namespace[f"copy_{name}"] = partial(copy.copy, order)
                self.lines.append(f"{name} = copy_{name}()")
                return name
        return ""

    def _read(self, number: int, step: Step) -> bool:
        """Write how arrays are made of the numbers in another one, or of nothing, if it can be."""
        sources = [self.array(each) for each in step.read]
        names = [f"p{number}_{index}" for index in range(len(step.written))]
        self.arrays |= {id(each): name for each, name in zip(step.written, names, strict=True)}
        self.namespace[f"read{number}"] = step.run
        target = f"[{', '.join(names)}]" if step.several else names[0]
        self.lines.append(f"{target} = read{number}({', '.join(sources)})")
        return all(sources)

    def _renew(self, number: int, step: Step, sources: dict[str, str], node: Any) -> None:
        """Write how a node gets the numbers of its own call."""
        fixed = {k: v for k, v in node.parameters.items() if k not in sources}
        call = node.call.with_numbers(fixed)
        numbers = [each for name in sources for each in arrays_in(step.parameters[name])]
        # So is that of the call that was noted: both share what runs their rules.
        call.counted = any(id(each) in self.counted for each in (*step.written, *numbers))
        node.call.counted = call.counted
        self.namespace |= {f"call{number}": call, f"fixed{number}": fixed}
        given = ", ".join([f"**fixed{number}", *[f"{k!r}: {v}" for k, v in sources.items()]])
        metas = ""
        if any(id(each) in self.counted for each in step.written):
            outputs = [f"x{number}_{index}" for index in range(len(step.outputs))]
            metas = f", ({''.join([f'({each}.shape, {each}.dtype), ' for each in outputs])})"
        self.lines.append(f"node{number}.call = call{number}.with_numbers({{{given}}}{metas})")

    def _compute(self, number: int, step: Step, arguments: Sequence[str]) -> None:
        """Write what computes the arrays of a step's outputs."""
        arrays = [f"x{number}_{index}" for index in range(len(step.outputs))]
        target = f"[{', '.join(arrays)}]" if step.several else arrays[0]
        self.namespace[f"run{number}"] = step.run
        self.lines.append(f"{target} = run{number}({', '.join(arguments)})")

    def _wrap(
        self, number: int, index: int, step: Step, operands: Sequence[Any], output: Tensor
    ) -> Value:
        """Write how an output becomes a tensor, if anybody sees it."""
        view = step.primitive.view
        name = f"r{number}_{index}"
        value = Value(name, operands[0].root if view else None, False, False)
        value.array = f"x{number}_{index}"
        seen = id(output) in self.results
        if view:
            value.counter = self._counter(value.root)
            if not seen:
                return value
        elif not seen and id(output) not in self.bases:
            return value
        made = [f"{name} = new(Tensor)", f"{name}._array = {value.array}"]
        if id(step.written[index]) not in self.counted:
            self.namespace[f"kind{number}_{index}"] = kind_for(step.written[index])
            made.append(f"{name}._kind = kind{number}_{index}")
        if not view:
            self.lines += made
            value.counter = f"c{number}_{index}"
            self.lines.append(
                f"{name}._counter = {value.counter} = new_counter() if interceptors else [0]"
            )
            value.base = name
            return value
        root = value.root
        origin = f"{root.tensor}._view_origin" if root.is_argument else "''"
        base = self.part(root, "base") if root.is_argument else root.tensor
        recorded = [
            *made,
            f"{name}._counter = {value.counter}",
            f"{name}._base = {base}",
            f"try: {name}._view_version = {value.counter}[0]",
            "except RuntimeError: return None  # an inference tensor has no version",
            f"origin = {origin}",
            f"if origin: {name}._view_origin = origin",
            "if not modes.grad:",
            f"    if origin != 'inference': {name}._view_origin = 'no_grad'",
            f"    if {name}._base._edge is not NO_EDGE: {name}._edge = NOWHERE",
        ]
        if step.primitive.multiple_views:
            recorded.append(f"elif origin != 'inference': {name}._view_origin = 'multiple'")
        self.lines += [
            "if interceptors and modes.inference:",
            f"    {name} = view_of({root.tensor}, {value.array})",
            "else:",
            *[f"    {line}" for line in recorded],
        ]
        return value

    def _counter(self, value: Value) -> str:
        """Return the name of a version counter; one that nobody sees is made when it is saved."""
        if value.is_argument:
            return self.part(value, "counter")
        if not value.counter:
            value.counter = f"c_{value.array}"
            self.lines.append(f"{value.counter} = [0]")
        return value.counter

    def _record(
        self,
        number: int,
        step: Step,
        operands: Sequence[Any],
        outputs: Sequence[Value],
        arguments: Sequence[str],
        node: Any,
        held: Sequence[Any],
    ) -> None:
        """Write how the node of a step is recorded."""
        name = f"node{number}"
        node.call.remember()
        self.namespace |= {f"class{number}": type(node), f"call{number}": node.call}
        with_edges = operands[: len(node.targets)]
        edges = [("None", "0") if each is None else self.edge(each) for each in with_edges]
        saved, tensors = [], []
        for kind, at in self.places(node):
            tensors.append("")
            if kind == "held" and type(at) is str:
                saved.append(f"{at!r}, None, 0")
            elif kind == "number":
                self.namespace[f"convert{number}"] = step.primitive.number_converter(
                    at, step.parameters
                )
                saved.append(f"convert{number}({arguments[at]}), None, 0")
            else:
                value = {"held": held, "input": operands, "output": outputs}[kind][at]
                saved.append(self._saved(value))
                tensors[-1] = self.given(value)
        made = (name, f"class{number}", f"call{number}")
        constants = are_constants(self.places(node), len(node.targets))
        self.lines += record_lines(*made, edges_source(edges), saved, constants)
        for index, (output, value) in enumerate(zip(step.outputs, outputs, strict=True)):
            if output._edge is None or output._edge[0] is not node:
                continue
            value.requires = True
            value.edge = (name, str(index))
            if id(output) in self.results or (id(output) in self.bases and not step.primitive.view):
                self.lines.append(f"{value.tensor}._edge = ({name}, {index})")
        self.saved[name] = tensors

    def places(self, node: Any) -> Saved:
        """Return what a node saves."""
        places: Saved = node.call.saved_places
        return places

    def _saved(self, value: Value) -> str:
        """Return what is saved of a tensor: array, version counter and version."""
        counter = self._counter(value)
        return f"{self.part(value, 'array')}, {counter}, {counter}[0]"


def default_dtype_lines(namespace: dict[str, Any]) -> list[str]:
    """Return the lines that leave a call to the long way under another default dtype."""
    namespace |= {"defaults": defaults, "floating": defaults.floating}
    return ["if defaults.floating is not floating: return None"]


def compile_call(
    arguments: Sequence[Any],
    steps: Steps,
    result: Any,
    *,
    sequence: bool = False,
    in_order: Sequence[int] | None = None,
    default_dtype: bool = False,
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
    in_order : sequence of int, optional
        Which of the arguments the one step there is takes, in this order: then a tensor may be
        there twice, and numbers are arguments, too.
    default_dtype : bool
        Whether it holds for the default dtype of now; for another one it returns None.
    """
    if not steps.is_complete():
        return None
    results = result if isinstance(result, tuple) else (result,)
    writer = CallWriter(arguments, steps, results)
    names = writer.take_in_order(arguments, in_order)
    for number, step in enumerate(steps.steps):
        if not writer.step(number, step, names):
            return None
    found = [writer.values.get(id(each)) or writer.made(each) for each in results]
    if any(
        value is None or writer.arrays.get(id(each._array), value.array) != value.array
        for each, value in zip(results, found, strict=True)
    ):
        return None
    returned = ", ".join([value.tensor for value in found if value is not None])
    if isinstance(result, tuple):
        returned = f"({returned}{',' if len(found) == 1 else ''})"
        if type(result) is not tuple:
            writer.namespace["Returned"] = type(result)
            returned = (
                f"Returned{returned}" if hasattr(result, "_fields") else f"Returned({returned})"
            )
    lines = (
        [*default_dtype_lines(writer.namespace), *writer.lines] if default_dtype else writer.lines
    )
    parameters = ", ".join([f"t{position}" for position in range(len(arguments))])
    if sequence:
        lines = [f"[{parameters}] = tensors", *lines]
        parameters = "tensors"
    lines = [*lines, *pack_lines(writer.saved), f"return {returned}"]
    return define_lines("call", parameters, lines, writer.namespace)
