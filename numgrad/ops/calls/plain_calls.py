"""Generate the Python around an elementwise kernel: forward, record and backward of a plan.

With four numbers in a tensor the kernels take a tenth of the time of a gradient; the rest is what
Python does around them. What to save and what to hand to the kernel is known when a
`GradientPlan` is made, so it is written out once instead of being looked up in every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from numgrad.graph.kinds import Kind
from numgrad.ops.calls.keys import in_int64, refresh_line

__all__ = ["PlainCall", "front_source", "run_source"]


class PlainCall(NamedTuple):
    """What a plain call takes, for operands of a kind.

    Attributes
    ----------
    entry : callable
        Of the kernel.
    shape, dtype
        Of the result.
    rows : Kind
        Of the result.
    is_flat : bool
        Whether operands are what the entry takes, as they are.
    """

    entry: Any
    shape: tuple[int, ...]
    dtype: Any
    rows: Kind
    is_flat: bool


def run_source(
    numbers: Sequence[bool],
    sources: Sequence[bool | None],
    *,
    spare: bool = False,
    decide: Sequence[int] = (),
) -> str:
    """Return the source of ``run(node, gradients)``: the gradients of a node's inputs, and `owned`.

    It is for a node whose inputs that are tensors have the shape and dtype of its output.

    Parameters
    ----------
    numbers : sequence of bool
        For each value that was saved whether it is a number.
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
    lines = [
        "def run(node, gradients):",
        "    gradient = gradients[0]",
        "    if gradient is None:",
        "        return nothing",
    ]
    if not outputs:
        return "\n".join([*lines, f"    return {result}"]) + "\n"
    lines += [
        "    saved = node.saved",
        "    if saved is None:",
        "        raise RuntimeError(FREED)",
    ]
    operands, written, unpacked = ["gradient.ravel()"], [], []
    for index, is_number in enumerate(numbers):
        unpacked += [f"saved{index}", f"counter{index}", f"version{index}"]
        if is_number:
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
        f"    elif shape and not {rows} and walks_otherwise(gradient, saved):",
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


def front_source(
    names: Sequence[str], options: Mapping[str, str] | None = None, *, rule: str = ""
) -> str:
    """Return the source of the public function, the method or an operator of a primitive.

    It runs the plain case on the spot: tensors of one kind, of few elements that lie row by row, or
    one such tensor and a number. What else there is has a key in `call`.
    In the same table the plain case looks up parts of such a key: the kind for a `PlainCall` (of
    two operands: for tensors, and for one beside a number), and which operands require grad (beside
    a number: "tn") for what makes the node.

    Parameters
    ----------
    names : sequence of str
        What the operands are called.
    options : mapping, optional
        The keywords that it has beside, with how their defaults are written. If there are such,
        `otherwise` says what is wrong with arguments, those that are missing or too many, too.
    rule : str
        What is called with operands that are as declared; `call` if nothing has to be looked at.
    """
    first, second = names[0], names[1] if len(names) == 2 else ""
    operands = ", ".join(names)
    checked = rule or f"call(({operands},))"
    if options is not None:
        keywords = "".join([f", {name}={default}" for name, default in options.items()])
        given = "".join([f", {name}={name}" for name in options])
        head = f"{', '.join([f'{name}=REQUIRED' for name in names])}, *extra{keywords}"
        conditions = [f"{name} is not {default}" for name, default in options.items()]
        conditions.append("extra")
        elsewhere = f"otherwise({operands}, *extra{given})"
    else:
        head, conditions, elsewhere = operands, [], f"otherwise({operands})"
    odd = " or ".join([f"type({first}) is not Tensor", *conditions, "call_interceptors"])
    lines = [
        f"def function({head}):",
        f"    if {odd}:",
        f"        return {elsewhere}",
        f"    kind = {first}._kind or kind_of({first})",
    ]
    plain = _plain_call(names, "t" * len(names), checked)
    if not second:
        return "\n".join([*lines, *plain]) + "\n"
    lines += [
        f"    if type({second}) is Tensor:",
        f"        if ({second}._kind or kind_of({second})) is not kind:",
        f"            return {checked}",
        *[f"    {line}" for line in plain],
        f"    number = type({second})",
        "    if not (number is float or number is int):",
        *[f"        if number in NUMBERS: return {checked}"] * (options is not None and not rule),
        f"        return otherwise({operands})",
        *_plain_call(names, "tn", checked),
    ]
    return "\n".join(lines) + "\n"


def _plain_call(names: Sequence[str], kinds: str, otherwise: str) -> list[str]:
    """Return the lines that run a kernel's entry, wrap its result and attach a node."""
    number = "n" in kinds
    tensors = names[: kinds.count("t")]
    given = [f"{tensor}._array" for tensor in tensors]
    flat = [f"{array}.ravel()" for array in given]
    require = [f"{tensor}._edge is not NO_EDGE" for tensor in tensors]
    unary = kinds == "t"
    key = repr(kinds) if number else "1" if unary else "needs"
    plain = "find(kind)" if unary else f"(find(kind) or new_calls(kind))[{int(number)}]"
    operands = ", ".join([*tensors, *["right"] * number])
    behind = ["right"] * number + ["value"]
    return [
        f"    plain = {plain}",
        "    if not plain:",
        f"        if plain is None: find_call(kind, {number})",
        f"        return {otherwise}",
        *[f"    {refresh_line(tensor)}" for tensor in tensors],
        *[
            f"    if number is float: right = {names[-1]}",
            f"    elif {in_int64(names[-1])}: right = float({names[-1]})",
            f"    else: return {otherwise}",
        ]
        * number,
        "    entry, shape, dtype, rows, is_flat = plain",
        "    value = empty(shape, dtype)",
        f"    if is_flat: entry({', '.join([*given, *behind])})",
        f"    else: entry({', '.join([*flat, *behind])}.ravel())",
        "    tensor = new(Tensor)",
        "    tensor._array = value",
        "    tensor._kind = rows",
        "    tensor._counter = new_counter() if interceptors else [0]",
        f"    if ({' or '.join(require)}) and modes.grad:",
        *[f"        needs = ({require[0]}) + ({require[-1]}) * 2"] * (key == "needs"),
        f"        record = find({key}) or make_recorder({key}, '{kinds}')",
        f"        record({operands}, tensor)",
        "    return tensor",
    ]
