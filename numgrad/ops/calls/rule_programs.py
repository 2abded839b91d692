"""Programs of rules: what the rules of a node came to on arrays, written out as source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.tensor import Tensor
from numgrad.ops.calls.node_source import define_lines
from numgrad.ops.calls.programs import number_source
from numgrad.ops.calls.steps import READING, Step, Steps, arrays_in

__all__ = ["Gradients", "note_rules"]

# What `Node.run_arrays` returns.
Gradients = tuple[Sequence[Any], Sequence[bool | None]]


def note_rules(
    programs: dict[Any, Any], key: Any, node: Any, gradients: Sequence[Any]
) -> Gradients:
    """Run the rules of a node, and remember what they came to."""
    saved = node.saved
    # An array that is there twice need not be the next time: each is told by what it is.
    met: set[int] = set()
    gradients = [_another_if_met(gradient, met) for gradient in gradients]
    if saved is not None:
        node.saved = tuple([_another_if_met(value, met) for value in saved])
    known = [each for value in node.parameters.values() for each in arrays_in(value)]
    steps = Steps(known, [*known, *gradients] if node.call.counted else ())
    try:
        results, owned = steps.run(node.rules_on, gradients)
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
                if index < len(node.plan.saved):  # not what an index was read from
                    names[id(saved[3 * index])] = f"a{index}"
                stale.append(f"c{index}[0] != v{index}")
        lines.append(f"{', '.join(unpacked)} = saved")
        if stale:
            lines.append(f"if {' or '.join(stale)}: return node.run_rules(gradients)")
    for parameter, value in node.parameters.items():
        for index, each in enumerate(arrays_in(value)):
            if id(each) in names:
                return None
            names[id(each)] = f"n_{parameter}_{index}"
            held = f"node.call.parameters[{parameter!r}]"
            if value is not each:
                held += f"[{[id(one) for one in value].index(id(each))}]"
            lines.append(f"n_{parameter}_{index} = {held}")
    namespace: dict[str, Any] = {"owned": tuple(owned)}
    constants = {
        id(each._array): each._array for each in steps.constants if each._array.size <= FEW_ELEMENTS
    }
    # What a result is, or is a view of, is made anew each time: its receiver may write to it, that
    # of this one, too.
    for number, (place, constant) in enumerate(constants.items()):
        if any(each is not None and np.may_share_memory(each._array, constant) for each in results):
            namespace[f"k{number}"] = constant.copy("K")
            names[place] = f"c_{number}"
            lines.append(f"c_{number} = k{number}.copy('K')")

    def name_of(array: Any) -> str:
        return names.get(id(array), "")

    for number, step in enumerate(steps.steps):
        arguments = []
        if not _fits_any_count(step, steps):
            return None
        if step.primitive is READING:
            arguments += [names.get(id(each), "") for each in step.read]
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
        sources = [number_source(step.parameters[name], name_of) for name in step.numbers]
        if "" in arguments or "" in sources:
            return None
        arguments += [f"{k}={source}" for k, source in zip(step.numbers, sources, strict=True)]
        outputs = [f"x{number}_{index}" for index in range(len(step.written))]
        target = f"[{', '.join(outputs)}]" if step.several else outputs[0]
        namespace[f"run{number}"] = step.run
        lines.append(f"{target} = run{number}({', '.join(arguments)})")
        for array, name in zip(step.written, outputs, strict=True):
            names[id(array)] = name
    found = ["None" if each is None else names.get(id(each._array), "") for each in results]
    if "" in found:
        return None
    lines.append(f"return ({', '.join(found)},), owned")
    return define_lines("run", "node, gradients", lines, namespace)


def _fits_any_count(step: Step, steps: Steps) -> bool:
    """Whether a step is the same for arrays of other shapes, where these follow from numbers."""
    if step.numbers or step.primitive is READING:
        return True
    return not any(id(each) in steps.counted for each in step.read)
