"""The call of a compiled trace as straight-line Python: take arrays, run, wrap, record.

Two functions are made of these lines. One takes the leaves of arguments whose key was found. The
other is for who calls with the same kind of arguments again and again: a method which finds out
itself whether the trace fits, from the arguments as they were written, and goes the general way
where not.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import from_dtype, types

from numgrad.base.dtypes import defaults
from numgrad.base.pytree import LEAF, TreeSpec, unflatten
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.counters import new_counter
from numgrad.graph.modes.anomaly import note_node
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.node import next_sequence
from numgrad.graph.saved_tensors import pack_saved
from numgrad.graph.tensor import NO_EDGE, Tensor, plain, wrap
from numgrad.jit.capture.guards import ERRORS
from numgrad.jit.front.compiled import Compiled
from numgrad.jit.front.node import node_class
from numgrad.jit.front.states import hold, let_go
from numgrad.jit.run.program_call import ProgramCall, define_call
from numgrad.ops.calls.node_source import pack_lines, record_lines
from numgrad.ops.core.primitive import save_tensor
from numgrad.ops.creation.generator import Generator

__all__ = ["front_call", "leaves_call"]

# What NumPy takes Python's numbers for, which is what compiled code returns.
_OF_PYTHON = (np.float64, np.complex128, np.bool_)
_NUMBERS = (float, complex)
_COMPARED = (int, bool, str, type(None))  # static arguments that `==` tells apart, in one type
_ABSENT: Any = object()  # what stands for an argument that was not given
_NAMES = {
    "ERRORS": ERRORS,
    "NO_EDGE": NO_EDGE,
    "Tensor": Tensor,
    "absent": _ABSENT,
    "array": np.array,
    "as_array": lambda leaf: np.asarray(plain(leaf)),
    "asarray": np.asarray,
    "defaults": defaults,
    "empty": np.empty,
    "gradient_edge": gradient_edge,
    "interceptors": interceptors,
    "modes": modes,
    "ndarray": np.ndarray,
    "new": object.__new__,
    "new_counter": new_counter,
    "next_sequence": next_sequence,
    "note_node": note_node,
    "pack_saved": pack_saved,
    "ref": weakref.ref,
    "present": lambda given: [argument for argument in given if argument is not _ABSENT],
    "save_tensor": save_tensor,
    "unflatten": unflatten,
    "wrap": wrap,
}


def leaves_call(compiled: Compiled, specialised: bool = False) -> Callable[..., Any]:
    """Return ``run(jitted, leaves)``, for leaves of arguments like those that were traced.

    Parameters
    ----------
    compiled : Compiled
    specialised : bool
        Whether the sizes are compiled in.
    """
    names = "".join([f"leaf{k}, " for k in range(len(compiled.leaves))])
    lines = [f"{names}= leaves"] if names else []
    for k, leaf in enumerate(compiled.leaves):
        if leaf.array is None or leaf.kind in _NUMBERS:
            continue
        if issubclass(leaf.kind, Tensor):
            lines.append(f"given{k} = leaf{k}._array")
        else:  # another class may have the same key
            lines.append(f"given{k} = leaf{k} if type(leaf{k}) is ndarray else as_array(leaf{k})")
    body, meanings = _body(compiled, specialised)
    return define_call("self, leaves", [*lines, *body], meanings)


def front_call(compiled: Compiled, general: Callable[..., Any], frozen: bool) -> Any:
    """Return the method of compiled functions that finds out itself whether a trace fits.

    None if there is none for such arguments. A method of one that is `frozen` takes it that nothing
    outside has changed.

    Parameters
    ----------
    compiled : Compiled
    general : callable
        The method that finds the trace for any arguments.
    frozen : bool
    """
    positional, named = compiled.arguments.children
    match = _Match(compiled)
    given = []
    unseen = "rest or interceptors" if named.children else "rest or keywords or interceptors"
    conditions = [f"not ({unseen})", "modes.grad is grad", "defaults.floating is default"]
    for k, child in enumerate(positional.children):
        given.append(match.next_leaf if child == LEAF else f"argument{k}")
        match.see(child, given[-1])
    if named.children:
        match.children(named, "keywords")
    if not match.is_possible:
        return None
    conditions += match.conditions
    body, names = _body(compiled, compiled.is_specialised, intercepted=False)
    names |= match.names
    names |= {"default": defaults.floating, "general": general, "grad": modes.grad}
    if not frozen:
        outside, found = compiled.watch.guards.conditions()
        conditions += outside
        names |= found
        if compiled.watch.baked:
            conditions.append("not changed_numbers()")
            names["changed_numbers"] = compiled.watch.changed_numbers
    lines = [
        "try:",
        f"    fits = {' and '.join(conditions)}",
        "except ERRORS:  # something that the function takes from outside is not there",
        "    fits = False",
        "if not fits:",
        f"    return general(self, *present([{', '.join(given)}]), *rest, **keywords)",
        "self._hits += 1",
        *match.lines,
        *body,
    ]
    parameters = ["self", *(f"{name}=absent" for name in given), "*rest", "**keywords"]
    return define_call(", ".join(parameters), lines, names)


class _Match:
    """Writes the conditions under which arguments are like those that were traced.

    On the way the leaves get their names; the lines name the arrays of those that are traced.
    """

    def __init__(self, compiled: Compiled) -> None:
        self.conditions: list[str] = []
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.is_possible = True
        self._compiled = compiled
        self._strides = dict(compiled.strides)
        self._leaf = self._container = 0

    @property
    def next_leaf(self) -> str:
        """The name of the leaf that comes next."""
        return f"leaf{self._leaf}"

    def see(self, spec: TreeSpec, source: str) -> None:
        """Write the conditions on what is found at some place."""
        if spec == LEAF:
            self._see_leaf(self._leaf, source)
            self._leaf += 1
            return
        if spec.type not in (tuple, list, dict):
            self.is_possible = False
            return
        name = f"container{self._container}"
        self._container += 1
        self.conditions.append(f"type({name} := {source}) is {spec.type.__name__}")
        self.children(spec, name)

    def children(self, spec: TreeSpec, name: str) -> None:
        """Write the conditions on what is in a container."""
        keys = f"keys_{name}"
        if spec.type is dict:
            self.names[keys] = spec.context
            self.conditions.append(f"(*{name},) == {keys}")
        else:
            self.conditions.append(f"len({name}) == {len(spec.children)}")
        for k, child in enumerate(spec.children):
            self.see(child, f"{name}[{keys}[{k}]]" if spec.type is dict else f"{name}[{k}]")

    def _see_leaf(self, k: int, source: str) -> None:
        kind, value, array, requires_grad = self._compiled.leaves[k]
        name = self.next_leaf
        found = name if source == name else f"{name} := {source}"
        self.conditions.append(f"type({found}) is kind_{k}")
        self.names[f"kind_{k}"] = kind
        if kind is Generator:
            return
        if array is None:
            self.conditions.append(f"{name} == static_{k}")
            self.names[f"static_{k}"] = value
            self.is_possible &= kind in _COMPARED
            return
        if kind in _NUMBERS:
            return
        given = name
        if kind is Tensor:
            given = f"{name}._array"
            edge = "is not NO_EDGE" if requires_grad else "is NO_EDGE"
            self.conditions.append(f"{name}._edge {edge} and {name}._base is None")
            self.conditions.append(f"type({given}) is ndarray")
        self.is_possible &= kind in (Tensor, np.ndarray)
        self.lines.append(f"given{k} = {given}")
        dtype, shape, strides, _ = array
        self.conditions += [f"{given}.dtype is dtype_{k}", f"{given}.shape == shape_{k}"]
        self.names |= {f"dtype_{k}": dtype, f"shape_{k}": shape}
        if k in self._strides:
            self.conditions.append(f"{given}.strides == strides_{k}")
            self.names[f"strides_{k}"] = strides


# --- what is done with the arrays -----------------------------------------------------------------


def _body(
    compiled: Compiled, specialised: bool, intercepted: bool = True
) -> tuple[list[str], dict[str, Any]]:
    """Return the lines of a call whose leaves have their names, and the names in them.

    They are for calls that something may intercept, or for others.
    """
    call = _specialised(compiled) if specialised else _general(compiled)
    names = {**_NAMES, **call.names, "compiled": compiled, "spec": compiled.spec}
    lines = _drawing(compiled, call, names) if compiled.sources else call.lines
    lines = [*lines, *[f"leaf{k}.requires_grad_()" for k in compiled.required]]
    lines += _results(compiled, call, names, intercepted)
    if compiled.differentiable:
        lines += _record(compiled, names, intercepted)
    results = [f"result{k}" for k in range(len(compiled.outputs))]
    lines.append(f"return {_structure(compiled.spec, results)}")
    return lines, names


def _array(compiled: Compiled, k: int) -> str:
    """Return what gives the array of a leaf."""
    return f"asarray(leaf{k})" if compiled.leaves[k].kind in _NUMBERS else f"given{k}"


def _states(compiled: Compiled) -> list[str]:
    """Return the names of the states that are drawn from."""
    return [f"state{k}" for k in range(len(compiled.sources))]


def _drawing(compiled: Compiled, call: ProgramCall, names: dict[str, Any]) -> list[str]:
    """Return the lines of a call that draws random numbers: nobody else does meanwhile."""
    sources = []
    for k, source in enumerate(compiled.sources):
        if isinstance(source, int):
            sources.append(f"leaf{source}")
        else:
            sources.append(f"source{k}")
            names[f"source{k}"] = source
    names |= {"hold": hold, "let_go": let_go}
    states = _states(compiled)
    inside = [f"{', '.join(states)}, = [source.words() for source in sources]", *call.lines]
    found = call.results[len(call.results) - len(states) :]
    inside += [f"{source}.set_words({state})" for source, state in zip(sources, found, strict=True)]
    return [
        f"sources = [{', '.join(sources)}]",
        "held = hold(sources)",
        "try:",
        *[f"    {line}" for line in inside],
        "finally:",
        "    let_go(held)",
    ]


def _general(compiled: Compiled) -> ProgramCall:
    given = [_array(compiled, k) for k in compiled.traced]
    return compiled.program.call_lines([*given, *_states(compiled)])


def _specialised(compiled: Compiled) -> ProgramCall:
    """Return the call of the program's dispatcher for these sizes."""
    dispatcher, graph = compiled.program.filler, compiled.program.graph
    signature: list[Any] = []
    given = []
    strides = dict(compiled.strides)
    for k, value in zip(compiled.traced, graph.inputs, strict=False):
        kind, _, array, _ = compiled.leaves[k]
        if kind is float:
            signature.append(types.float64)
            given.append(f"leaf{k}")
            continue
        order: Any = array[3] if k in strides and array is not None else "A"
        signature.append(types.Array(from_dtype(value.dtype), len(value.shape), order))
        given.append(_array(compiled, k))
    signature += [types.Array(types.uint64, 1, "C")] * len(compiled.sources)
    given += _states(compiled)
    names: dict[str, Any] = {}
    lines, results, numbers = [], [], 0
    for k, output in enumerate(graph.outputs):
        names[f"dtype_y{k}"] = output.dtype
        if output.shape:
            signature.append(types.Array(from_dtype(output.dtype), len(output.shape), "C"))
            names[f"shape_y{k}"] = output.shape
            lines.append(f"y{k} = empty(shape_y{k}, dtype_y{k})")
            given.append(f"y{k}")
            results.append(f"y{k}")
            continue
        of_python = output.dtype in _OF_PYTHON
        results.append(f"array(found[{numbers}]{'' if of_python else f', dtype_y{k}'})")
        numbers += 1
    dispatcher.compile(tuple(signature))
    names["entry"] = dispatcher.overloads[tuple(signature)].entry_point
    return ProgramCall([*lines, f"found = entry({', '.join(given)})"], results, names)


def _results(
    compiled: Compiled, call: ProgramCall, names: dict[str, Any], intercepted: bool
) -> list[str]:
    """Return the lines that make the results tensors."""
    lines = []
    for k, (kind, which, _, laid, counted) in enumerate(compiled.outputs):
        result = f"result{k}"
        if kind == "argument":
            is_tensor = issubclass(compiled.leaves[which].kind, Tensor)
            array = _array(compiled, which)
            lines.append(f"{result} = " + (f"leaf{which}" if is_tensor else f"wrap({array})"))
            continue
        if kind == "static":
            names[result] = which
            continue
        array = call.results[which]
        counter = "new_counter() if interceptors else " * (intercepted and not counted)
        if compiled.program.graph.outputs[which].operation == "input":
            array = f"{array}.copy()"
        if laid is not None:
            axes = laid.transposition()
            names[f"place{k}"] = laid.place
            if axes is None:
                array = f"place{k}({array})"
            elif axes == tuple(range(len(axes)))[::-1]:
                array = f"{array}.T"  # in half of the time
            else:
                array = f"{array}.transpose{axes}"
        lines += [
            f"{result} = new(Tensor)",
            f"{result}._array = {array}",
            f"{result}._counter = {counter}[0]",
        ]
    return lines


def _record(compiled: Compiled, names: dict[str, Any], intercepted: bool) -> list[str]:
    """Return the lines that attach a node to the results that require grad."""
    names["node_class"] = node_class(len(compiled.differentiable))
    states = _states(compiled)
    leaves = [f"leaf{k}" for k in compiled.traced] + states
    traced = f"({''.join([f'{leaf}, ' for leaf in leaves])})"
    lines = [
        "if compiled.backward is None:",
        f"    compiled.prepare_backward(self._make_backward, {traced})",
    ]
    for k in compiled.moving:
        lines += [
            f"edge{k} = leaf{k}._edge",
            f"if edge{k} is None or leaf{k}._base is not None: edge{k} = gradient_edge(leaf{k})",
        ]
    names["targets"] = tuple([node for node, _ in compiled.outside])
    names["numbers"] = tuple([number for _, number in compiled.outside])
    edges = [
        f"({''.join([f'edge{k}[{part}], ' for k in compiled.moving])}*{name},)"
        for part, name in enumerate(("targets", "numbers"))
    ]
    saved, tensors = [], []
    for k in compiled.traced:
        tensors.append(f"leaf{k}" if issubclass(compiled.leaves[k].kind, Tensor) else "")
        if issubclass(compiled.leaves[k].kind, Tensor):
            lines.append(f"counter{k} = leaf{k}._counter")
            saved.append(f"given{k}, counter{k}, counter{k}[0]")
        else:
            saved.append(f"leaf{k}, None, 0")
    saved += [f"{state}, None, 0" for state in states]
    tensors += [""] * len(states)
    lines += record_lines("node", "node_class", "compiled", edges, saved)
    lines.append("node.read = [save_tensor(tensor) for tensor in compiled.read]")
    lines += [f"result{k}._edge = (node, {at})" for at, k in enumerate(compiled.differentiable)]
    if intercepted:
        lines += [
            "if interceptors:",
            "    note_node(node)",
            *[f"    {line}" for line in pack_lines({"node": tensors})],
        ]
    return lines


def _structure(spec: TreeSpec, leaves: Sequence[str]) -> str:
    """Return the expression that makes the result of its leaves."""
    if spec == LEAF:
        return leaves[0]
    if spec.type in (tuple, list) and all(child == LEAF for child in spec.children):
        inside = ", ".join(leaves)
        if spec.type is list:
            return f"[{inside}]"
        return f"({inside},)" if leaves else "()"
    return f"unflatten(spec, [{', '.join(leaves)}])"
