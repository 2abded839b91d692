"""Source that makes nodes: `record_lines` is the one place that says how.

Calls that take the long way run it (`attach_for`), plain calls of elementwise functions
(`attach_plain`), and the programs that `numgrad.ops.calls.programs` makes of calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

from numgrad.codegen.define import define
from numgrad.graph.backward.accumulate import gradient_edge
from numgrad.graph.counters import new_counter
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.node import FREED, FROM_FIRST_OUTPUTS, next_sequence
from numgrad.graph.saved_tensors import pack_saved
from numgrad.graph.tensor import NO_EDGE, NOWHERE, Tensor, view_of

__all__ = [
    "Saved",
    "are_constants",
    "attach_for",
    "attach_plain",
    "define_lines",
    "edge_lines",
    "edges_source",
    "pack_lines",
    "record_lines",
]

# What is saved: ("input", i), ("output", i), ("number", i) for an operand that is no tensor,
# ("held", i) for a tensor that a parameter was read from, or ("held", name) for such a parameter
# that was read from none, but counts as saved.
Saved = tuple[tuple[str, Any], ...]


class Constants(tuple[Any, ...]):
    """What a node saved, if that is no more than a factor of its formula: nothing to be freed."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


_NAMES = {
    "__name__": __name__,
    "Constants": Constants,
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
    "pack_saved": pack_saved,
    "ref": weakref.ref,
    "view_of": view_of,
}


def record_lines(
    node: str,
    node_class: str,
    call: str,
    edges: list[str],
    saved: list[str],
    constants: bool = False,
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
    constants : bool
        Whether these are no more than `Constants`.
    """
    kept = f"({', '.join(saved)}{',' if saved else ''})"
    return [
        f"{node} = new({node_class})",
        f"{node}.targets = {edges[0]}",
        f"{node}.numbers = {edges[1]}",
        f"{node}.sequence = next_sequence()",
        f"{node}.attached = None",
        f"{node}.call = {call}",
        f"{node}.saved = {f'Constants({kept})' if constants else kept}",
    ]


def pack_lines(saved: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the lines that tell of what nodes saved, once their outputs hang on them.

    Forward mode notes them (see `Overwritten`), and hooks get what they saved.

    Parameters
    ----------
    saved : mapping
        For the name of each node, for each value that it saved what gives the tensor, or an empty
        string.
    """
    nodes = {node: tensors for node, tensors in saved.items() if tensors}
    if not nodes:
        return []
    lines = ["if interceptors:", "    kept = modes.overwritten", "    if kept is not None:"]
    lines += [f"        kept.savers.append(ref({node}))" for node in nodes]
    lines.append("    if modes.saved_hooks:")
    for node, tensors in nodes.items():
        given = "".join([f"{tensor or None}, " for tensor in tensors])
        lines.append(f"        pack_saved({node}, ({given}))")
    return lines


def are_constants(saved: Saved, operands: int) -> bool:
    """Return whether what nodes save are numbers behind the operands that may be tensors."""
    return bool(saved) and all(kind == "number" and at >= operands for kind, at in saved)


@lru_cache(1 << 10)
def attach_for(saved: Saved, kinds: str, outputs: tuple[int, ...]) -> Callable[..., Any]:
    """Return ``attach(node_class, call, inputs, outputs, held)``: it makes and returns a node.

    Parameters
    ----------
    saved : tuple
        What the node saves.
    kinds : str
        For each operand that has an edge whether it is a tensor or a number; see `Plan`. If empty,
        they are any number of tensors.
    outputs : tuple of int
        Which outputs hang on the node.
    """
    lines = []
    if not kinds:
        lines.append("edges = [gradient_edge(each) for each in inputs]")
        edges = ["tuple([edge[0] for edge in edges])", "tuple([edge[1] for edge in edges])"]
    else:
        tensors_at = [at for at, kind in enumerate(kinds) if kind not in "nq"]
        lines += [f"edge{at} = gradient_edge(inputs[{at}])" for at in tensors_at]
        edges = edges_source(
            [
                (f"edge{at}[0]", f"edge{at}[1]") if at in tensors_at else ("None", "0")
                for at in range(len(kinds))
            ]
        )
    values, tensors = [], []
    for number, (kind, at) in enumerate(saved):
        tensors.append("" if kind == "number" or type(at) is str else f"t{number}")
        if type(at) is str:
            values.append(f"{at!r}, None, 0")
        elif kind == "number":
            values.append(f"inputs[{at}], None, 0")
        else:
            source = "held" if kind == "held" else f"{kind}s"
            lines += [f"t{number} = {source}[{at}]", f"c{number} = t{number}._counter"]
            values.append(f"t{number}._array, c{number}, c{number}[0]")
    lines += record_lines(
        "node",
        "node_class",
        "call",
        edges,
        values,
        are_constants(saved, len(kinds)),
    )
    lines += [f"outputs[{number}]._edge = (node, {number})" for number in outputs]
    lines += pack_lines({"node": tensors})
    parameters = "node_class, call, inputs, outputs, held"
    return define_lines("attach", parameters, [*lines, "return node"], {})


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
    lines: list[str] = []
    edges = []
    for position, name in enumerate(operands[: primitive.tensor_count]):
        requires = kinds[position] == "t" and needs >> position & 1
        if requires:
            lines += edge_lines(name)
        edges.append((f"edge_{name}[0]", f"edge_{name}[1]") if requires else ("None", "0"))
    saved, tensors = [], []
    for kind, position in plan.saved_places:
        name = "tensor" if kind == "output" else operands[position]
        tensors.append("" if kind == "number" else name)
        if kind == "number":
            saved.append(f"{name}, None, 0")
        else:
            lines.append(f"counter_{name} = {name}._counter")
            saved.append(f"{name}._array, counter_{name}, counter_{name}[0]")
    constants = are_constants(plan.saved_places, primitive.tensor_count)
    lines += record_lines("node", "node_class", "plan", edges_source(edges), saved, constants)
    namespace = {"node_class": primitive.node_class, "plan": plan}
    lines += ["tensor._edge = (node, 0)", *pack_lines({"node": tensors})]
    return define_lines("attach", ", ".join([*operands, "tensor"]), lines, namespace)


def edge_lines(name: str) -> list[str]:
    """Return the lines that give where the gradient of a tensor goes, as ``edge_<name>``."""
    return [
        f"edge_{name} = {name}._edge",
        f"if edge_{name} is None: edge_{name} = gradient_edge({name})",
    ]


def edges_source(edges: Sequence[tuple[str, str]]) -> list[str]:
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


def define_lines(
    name: str, parameters: str, lines: Sequence[str], namespace: dict[str, Any]
) -> Callable[..., Any]:
    """Return the function of these lines, which may name what nodes and tensors are made of."""
    source = "\n".join([f"def {name}({parameters}):", *(f"    {line}" for line in lines), ""])
    return define(name, source, f"{name} {crc32(source.encode()):x}", {**_NAMES, **namespace})
