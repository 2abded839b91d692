"""Generate the Python around an elementwise kernel: forward, record and backward of a plan.

With four numbers in a tensor the kernels take a tenth of the time of a gradient; the rest is what
Python does around them. What to save and what to hand to the kernel is known when a
`GradientPlan` is made, so it is written out once instead of being looked up in every call.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["attach_source", "run_source"]


def attach_source(
    kinds: str, positions: Sequence[int], tensor_count: int, *, spare: bool = False
) -> str:
    """Return the source of ``attach(tensor, input, other, number)``, which records a node.

    It is for a result with the shape and dtype of the operands that are tensors.

    Parameters
    ----------
    kinds : str
        For each operand ``t``, a tensor, or ``n``, a number.
    positions : sequence of int
        The operands that are saved, and -1 for the output.
    tensor_count : int
        How many operands have an edge.
    spare : bool
        Whether the first operand is kept beside what is saved; see `numgrad.ops.core.spare`.
    """
    lines = [
        "def attach(tensor, input, other, number):",
        "    edge = input._edge",
        "    if edge is None:",
        "        edge = gradient_edge(input)",
        "    node = new(node_class)",
    ]
    if kinds == "tt":
        lines += [
            "    second = other._edge",
            "    if second is None:",
            "        second = gradient_edge(other)",
            "    node.targets = (edge[0], second[0])",
            "    first_outputs = not (edge[1] or second[1])",
            "    node.numbers = FROM_FIRST[2] if first_outputs else (edge[1], second[1])",
        ]
    elif tensor_count == 2:
        lines += [
            "    node.targets = (edge[0], None)",
            "    node.numbers = (edge[1], 0) if edge[1] else FROM_FIRST[2]",
        ]
    else:
        lines += [
            "    node.targets = (edge[0],)",
            "    node.numbers = (edge[1],) if edge[1] else FROM_FIRST[1]",
        ]
    saved = []
    for position in positions:
        if position < 0:
            saved.append("tensor._array, tensor._counter, 0")
        elif kinds[position] == "n":
            saved.append("number, None, 0")
        else:
            name = ("input", "other")[position]
            lines.append(f"    counter{position} = {name}._counter")
            saved.append(f"{name}._array, counter{position}, counter{position}[0]")
    if spare:  # as `with_spare` does it
        lines.append("    counter = input._counter")
        saved.append("input._array, counter, counter[0]")
    lines += [
        f"    node.saved = ({', '.join(saved)})",
        "    node.sequence = next_sequence()",
        "    node.attached = node.metas = None",
        "    node.plan = plan",
        "    tensor._edge = (node, 0)",
    ]
    return "\n".join(lines) + "\n"


def run_source(
    kinds: str,
    positions: Sequence[int],
    sources: Sequence[bool | None],
    *,
    spare: bool = False,
    decide: Sequence[int] = (),
) -> str:
    """Return the source of ``run(node, gradient)``: the gradients of a node's inputs, and `owned`.

    It is for a node whose inputs that are tensors have the shape and dtype of its output.

    Parameters
    ----------
    kinds : str
        For each operand ``t``, a tensor, ``m``, a bool tensor, or ``n``, a number.
    positions : sequence of int
        What was saved: operands, and -1 for the output.
    sources : sequence of (bool or None)
        For each input whether the kernel computes its gradient, or (False) it is the cotangent, or
        (None) it has none.
    spare : bool
        Whether an operand may have been kept beside what was saved.
    decide : sequence of int
        Which of what was saved decides before the cotangent how a gradient lies in memory.
    """
    results: list[str] = []
    outputs: list[str] = []
    for source in sources:
        if source:
            outputs.append(f"out{len(outputs)}")
        results.append(outputs[-1] if source else "None" if source is None else "gradient")
    result = f"({', '.join(results)},), owned"
    lines = ["def run(node, gradient):", "    if gradient is None:", "        return nothing"]
    if not outputs:
        return "\n".join([*lines, f"    return {result}"]) + "\n"
    lines += [
        "    saved = node.saved",
        "    if saved is None:",
        "        raise RuntimeError(FREED)",
    ]
    operands, written, unpacked = ["gradient.ravel()"], [], []
    for index, position in enumerate(positions):
        unpacked += [f"saved{index}", f"counter{index}", f"version{index}"]
        if position >= 0 and kinds[position] == "n":
            operands.append(f"saved{index}")
        else:
            operands.append(f"saved{index}.ravel()")
            written.append(f"counter{index}[0] != version{index}")
    if spare:  # as `spare_of` does it
        behind = [*unpacked, "spare", "counter", "version"]
        lines += [
            f"    if len(saved) == {len(behind)}:",
            f"        {', '.join(behind)} = saved",
            "        if counter[0] != version:",
            "            spare = None",
            "    else:",
            f"        {', '.join(unpacked)} = saved",
            "        spare = None",
        ]
    elif unpacked:
        lines.append(f"    {', '.join(unpacked)} = saved")
    if written:
        lines += [f"    if {' or '.join(written)}:", "        node.raise_if_modified()"]
    entry = "entries.get(dtype)"
    if spare:
        entry += " if spare is None else closer_entries.get(dtype)"
    rows = "gradient.flags.c_contiguous"
    if decide:
        also = "".join([f" and saved{index}.flags.c_contiguous" for index in decide])
        rows = f"({rows}{also})"
    lines += [
        "    dtype = gradient.dtype",
        f"    entry = {entry}",
        "    if entry is None or gradient.size > FEW_ELEMENTS:",
        "        return node.run_any_size(gradient)",
        "    shape = gradient.shape",
        *(f"    {output} = empty(shape, dtype)" for output in outputs),
        "    if len(shape) == 1:",
        *_entry_call(operands, outputs, spare),
        f"    elif not {rows} and walks_otherwise(gradient, saved):",
        "        return node.run_any_size(gradient)",
        "    else:",
        *_entry_call(operands, [f"{output}.ravel()" for output in outputs], spare),
        f"    return {result}",
    ]
    return "\n".join(lines) + "\n"


def _entry_call(operands: list[str], outputs: list[str], spare: bool) -> list[str]:
    """Return the lines that call the kernel, with the operand that was kept if there is one."""
    call = f"entry({', '.join([*operands, *outputs])})"
    if not spare:
        return [f"        {call}"]
    return [
        "        if spare is None:",
        f"            {call}",
        "        else:",
        f"            entry({', '.join([*operands, 'spare.ravel()', *outputs])})",
    ]
