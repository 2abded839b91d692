"""Generate standalone dispatchers, sizes written into them, to call from compiled code."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from numgrad.base.tuning import INLINED_ELEMENTS, INLINED_LINES, LOOP_PRODUCT_TERMS, STACK_BYTES
from numgrad.codegen.compile.compile import compile_source
from numgrad.jit.emit.opaque_steps import Memory, as_compact, opaque_step, operand_reader
from numgrad.jit.emit.program_source import Array, Emitted, emit, spell, used_by_steps
from numgrad.jit.emit.scalar_code import type_code
from numgrad.jit.emit.statements import Line, indent
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.jit.schedule.schedule import Nest

__all__ = ["STEPS", "is_short", "literal_dispatcher", "literal_loop"]

Build = Callable[[Graph], Any]

IN_REGISTERS = 64  # elements of an argument or result that is copied

# What compiled code calls back, under keys that no other process has.
STEPS: dict[str, Any] = {}
_numbers = itertools.count()


def literal_dispatcher(emitted: Emitted, graph: Graph, build: Build, *, into: bool = False) -> Any:
    """Return a dispatcher for arrays of the shapes of a graph's inputs.

    Parameters
    ----------
    emitted : Emitted
        What was emitted for the graph.
    graph : Graph
    build : callable
        Makes the program of a graph within this one.
    into : bool
        Whether arrays for the results are given, behind the inputs: then only those of no dims are
        returned. The results must be different, and no inputs.
    """
    source = _source(emitted, graph, build, into)
    is_inlined = not into and is_short(emitted) and source.count("\n") <= INLINED_LINES
    return compile_source("call", source, for_loops=is_inlined)


def literal_loop(emitted: Emitted, graph: Graph, build: Build) -> Any:
    """Return a dispatcher that runs a graph for unit vectors in the place of its first input.

    It is called with the first of them and the last, excluded, the other inputs, and an array for
    all that each output becomes, along its first dim. All are C-contiguous, and nothing is checked.
    """
    helpers: list[Line] = []
    _add_loop("loop", emitted, graph, build, helpers)
    return compile_source("loop", spell([*_imports(emitted), *helpers], origins=False))


def _source(emitted: Emitted, graph: Graph, build: Build, into: bool) -> str:
    helpers: list[Line] = []
    run = _add_nests("run", emitted, helpers)
    given = [f"{emitted.buffers[value]}_" for value in graph.inputs]
    if into:
        given += [_array_name(emitted, value) for value in graph.outputs if value.shape]
    body = _call(emitted, graph, build, run, helpers, into)
    head = [Line(""), Line(""), Line(f"def call({', '.join(given)}):")]
    return spell([*_imports(emitted), *helpers, *head, *indent(body)], origins=False)


def _imports(emitted: Emitted) -> list[Line]:
    lines = [Line(text) for text in emitted.imports(short=is_short(emitted))]
    lines.insert(2, Line("from numba import njit, objmode"))
    lines.append(Line("from numgrad.codegen.compile.compile import kernel"))
    lines.append(Line("from numgrad.codegen.loop_runtime import as_argument"))
    lines.append(Line("from numgrad.kernels.matmul import multiply"))
    return lines


def _add_nests(name: str, emitted: Emitted, helpers: list[Line]) -> str:
    """Write the nests as a function of their own, if they are not short; return the call of it."""
    if emitted.nests and not is_short(emitted):
        helpers += [Line(""), Line(""), Line("@kernel")]
        helpers.append(Line(emitted.head.replace("def run(", f"def {name}(")))
        helpers += indent(emitted.body(literal=True))
    arguments = [*(array.name for array in emitted.arguments), "header", "room"]
    return f"{name}({', '.join(arguments)})"


def is_short(emitted: Emitted) -> bool:
    """Whether a call takes less than what LLVM would need to know to take it apart.

    Then the nests stand in the function itself, where it can.
    """
    return all(isinstance(step, Nest) for step in emitted.plan.steps) and all(
        prod(emitted.values[name] for name in nest.nest.domain) <= INLINED_ELEMENTS
        for nest in emitted.nests.values()
    )


def _call(
    emitted: Emitted,
    graph: Graph,
    build: Build,
    run: str,
    helpers: list[Line],
    into: bool,
) -> list[Line]:
    lines = _given(emitted, graph.inputs)
    for array in emitted.arrays:
        kind = type_code(array.dtype)
        if array.role == "output" and not array.shape:  # returned as a number
            lines.append(Line(f"{array.name} = stack({kind}, 1)"))
        elif array.role == "output" and _is_registered(emitted, array):
            lines.append(Line(f"{array.name} = stack({kind}, {prod(array.shape)})"))
        elif array.role == "output" and not into:
            lines.append(Line(f"{array.name} = np.empty({array.shape}, {kind})"))
    lines += _room(emitted, helpers)
    lines += _steps(emitted, build, run, helpers)
    lines += _keep_room(emitted)
    results = []
    for k, output in enumerate(graph.outputs):
        name = emitted.buffers[output]
        if not output.shape:
            results.append(f"element({name}, 0)")
            continue
        returned = _array_name(emitted, output)
        is_shared = output.operation in ("input", "array") or output in graph.outputs[:k]
        if returned != name and not is_shared:
            kind = type_code(output.dtype)
            if not into:
                lines.append(Line(f"{returned} = np.empty({output.shape}, {kind})"))
            lines += _copied(returned, name, output)
        if into:
            continue
        results.append(f"{returned}.copy()" if is_shared else returned)
    lines.append(Line(f"return ({''.join(f'{result}, ' for result in results)})"))
    return lines


def _add_loop(name: str, emitted: Emitted, graph: Graph, build: Build, helpers: list[Line]) -> None:
    """Write the function of `literal_loop`."""
    vector, *inputs = graph.inputs
    run = _add_nests(f"{name}_run", emitted, helpers)
    kind, count = type_code(vector.dtype), prod(vector.shape)
    unit = emitted.buffers[vector]
    if _array_name(emitted, vector) != unit:
        lines = [Line(f"{unit} = stack({kind}, {count})"), Line(f"for at in range({count}):")]
        lines.append(Line(f"    store({unit}, at, 0)"))
    else:
        lines = [Line(f"{unit} = np.zeros({vector.shape}, {kind})")]
    lines += _given(emitted, inputs, known=True)
    before: list[Line] = []
    after: list[Line] = []
    written: set[str] = set()
    shapes = {array.name: array for array in emitted.arrays if array.role == "output"}
    for k, output in enumerate(graph.outputs):
        array, size = emitted.buffers[output], prod(output.shape)
        place, of_output = f"k * {size}", type_code(output.dtype)
        if array in shapes and array not in written:
            written.add(array)
            if output.shape and not _is_registered(emitted, output):
                at = f"{place} * {output.dtype.itemsize}"
                before.append(Line(f"{array} = part(all_{k}, {at}, {size}, {of_output})"))
                continue
            lines.append(Line(f"{array} = stack({of_output}, {max(1, size)})"))
        after.append(Line(f"for at in range({size}):"))
        after.append(Line(f"    store(all_{k}, {place} + at, element({array}, at))"))
    lines += _room(emitted, helpers)
    body = [Line(f"store({unit}, k, 1)"), *before, *_steps(emitted, build, run, helpers), *after]
    body.append(Line(f"store({unit}, k, 0)"))
    lines += [Line("for k in range(start, stop):"), *indent(body)]
    lines += _keep_room(emitted)
    given = ["start", "stop", *(f"{emitted.buffers[value]}_" for value in inputs)]
    given += [f"all_{k}" for k in range(len(graph.outputs))]
    helpers += [Line(""), Line(""), Line("@kernel")] if name != "loop" else [Line(""), Line("")]
    helpers += [Line(f"def {name}({', '.join(given)}):"), *indent(lines)]


def _given(emitted: Emitted, inputs: Sequence[Value], *, known: bool = False) -> list[Line]:
    """Return the lines that check the arguments, and put short ones into registers.

    If they are `known`, the caller has made them as they have to be, but for the number of dims.
    """
    lines = []
    for position, value in enumerate(inputs):
        name = emitted.buffers[value]
        given = _array_name(emitted, value)
        kind = type_code(value.dtype)
        found = f"{name}_" if known else f"as_argument({name}_, {kind}, {position})"
        lines.append(Line(f"{given} = {found}"))
        if not known:
            message = f"argument {position} must have the shape {value.shape} it was traced with"
            lines.append(Line(f"if {given}.shape != {value.shape}:"))
            lines.append(Line(f"    raise ValueError({message!r})"))
        if given != name:
            lines.append(Line(f"{name} = stack({kind}, {prod(value.shape)})"))
            lines += _copied(name, given, value)
    return lines


def _room(emitted: Emitted, helpers: list[Line]) -> list[Line]:
    """Return the lines that make what else the steps need, and fetch what was captured."""
    lines = []
    for array in emitted.arrays:
        if array.role == "result":
            kind = type_code(array.dtype)
            lines.append(Line(f"{array.name} = np.empty({(0,) * len(array.shape)}, {kind})"))
    lines.append(Line("header = stack(np.int64, 4)"))
    lines.append(Line("header[2] = 0"))
    lines.append(Line("header[3] = -1"))
    if 0 < emitted.room_bytes <= STACK_BYTES:
        lines.append(Line(f"room = stack(np.int64, {-(-emitted.room_bytes // 8)})"))
    else:
        lines.append(Line(f"room = np.empty({emitted.room_bytes}, np.uint8)"))
    rooms = set(_read_by_steps(emitted))
    for array in emitted.arrays:
        if array.role == "room" and array.name in rooms:
            at, count = emitted.values[f"at_{array.name}"], prod(array.shape)
            code = f"part(room, {at}, {count}, {type_code(array.dtype)})"
            lines.append(Line(f"{array.name} = {code}"))
    captured = {emitted.buffers[v]: v for v in emitted.buffers if v.operation == "array"}
    for name, value in captured.items():
        array = value.attributes["array"]
        key = _enter(lambda array=array: (as_compact(array),))
        lines.append(_helper(key, [], {name: _numba_type(value)}, helpers))
    return lines


def _keep_room(emitted: Emitted) -> list[Line]:
    """Numba frees an array after its last use, and knows nothing of its parts."""
    if emitted.room_bytes > STACK_BYTES and _read_by_steps(emitted):
        return [Line("store(room, 0, element(room, 0))")]
    return []


def _is_registered(emitted: Emitted, array: Value | Array) -> bool:
    """Whether an array is held where no other array can be, best in registers.

    LLVM vectorises short loops only if it need not ask whether arrays share memory.
    """
    return is_short(emitted) and 0 < prod(array.shape) <= IN_REGISTERS


def _array_name(emitted: Emitted, value: Value) -> str:
    """Return the name of an argument or a result as an array of its own."""
    name = emitted.buffers[value]
    outside = value.operation != "array" and value.shape
    return f"{name}_array" if outside and _is_registered(emitted, value) else name


def _copied(target: str, source: str, value: Value) -> list[Line]:
    return [
        Line(f"for at in range({prod(value.shape)}):"),
        Line(f"    store({target}, at, element({source}, at))"),
    ]


def _read_by_steps(emitted: Emitted) -> list[str]:
    """Return the names of the arrays that opaque steps use."""
    return [emitted.buffers[value] for value in used_by_steps(emitted.plan)]


def _steps(emitted: Emitted, build: Build, run: str, helpers: list[Line]) -> list[Line]:
    plan = emitted.plan
    if is_short(emitted):
        bounds = [Line("header[0] = 0"), Line(f"header[1] = {len(plan.steps)}")]
        return bounds + [
            line for line in emitted.body(literal=True, short=True) if line.code != "distinct()"
        ]
    lines: list[Line] = []
    start: int | None = None
    for position, step in enumerate([*plan.steps, None]):
        if isinstance(step, Nest):
            start = position if start is None else start
            continue
        if start is not None:
            lines.append(Line(f"header[0] = {start}"))
            lines.append(Line(f"header[1] = {position}"))
            lines.append(Line(run))
            start = None
        if step is None:
            break
        value = step.value
        if (
            value.operation == "matmul"
            and _terms(value) <= LOOP_PRODUCT_TERMS
            and 0 not in value.shape
        ):
            lines.append(_small_product(emitted, value))
        elif isinstance(value.attributes.get("primitive"), Rows):
            lines += _loop(emitted, build, value, helpers)
        else:
            lines.append(_opaque(emitted, build, value, helpers))
    return lines


def _terms(product: Value) -> int:
    """Return how many multiplications a matrix product takes."""
    return prod(product.shape) * product.operands[0].shape[1]


def _small_product(emitted: Emitted, value: Value) -> Line:
    """Return the line that computes a matrix product without the interpreter."""
    plan, buffers, values = emitted.plan, emitted.buffers, emitted.values
    given = []
    for operand in value.operands:
        strided = plan.elements.strided(operand, plan.kept)
        if operand in plan.kept or strided is None:
            given += [buffers[operand], "0", str(operand.shape[1]), "1"]
            continue
        given += [buffers[strided.base], str(strided.start.evaluate(values))]
        given += [str(stride.evaluate(values)) for stride in strided.strides]
    kind = type_code(value.dtype)
    sizes = [value.shape[0], value.operands[0].shape[1], value.shape[1]]
    given += [buffers[value], *map(str, sizes), f"{kind}(0)"]
    return Line(f"multiply({', '.join(given)})")


def _loop(emitted: Emitted, build: Build, value: Value, helpers: list[Line]) -> list[Line]:
    """Return the lines that do a step for unit vectors one after the other."""
    rows = value.attributes["primitive"]
    graph = rows.graph
    inside = emit(graph)
    name = f"loop_{sum(line.code.startswith('def loop_') for line in helpers)}"
    written: list[Line] = []
    _add_loop(name, inside, graph, build, written)
    imports = inside.imports(short=is_short(inside))
    helpers += [Line(""), Line(""), *(Line(text) for text in imports), *written]
    lines: list[Line] = []
    given = [_compact(emitted, operand, lines) for operand in value.operands]
    results = emitted.results_of(value)
    for position, output in enumerate(graph.outputs):
        found = f"unread_{position}"
        if position in results:
            found = emitted.buffers[results[position]]
        shape = (rows.count, *output.shape)
        lines.append(Line(f"{found} = np.empty({shape}, {type_code(output.dtype)})"))
        given.append(found)
    return [*lines, Line(f"{name}({', '.join(['0', str(rows.count), *given])})")]


def _compact(emitted: Emitted, operand: Value, lines: list[Line]) -> str:
    """Return the name of the array of an operand; write lines that copy it if it lies apart."""
    plan, values = emitted.plan, emitted.values
    strided = None if operand in plan.kept else plan.elements.strided(operand, plan.kept)
    if strided is None:
        return emitted.buffers[operand]
    name = f"compact_{sum(' = np.empty(' in line.code for line in lines)}"
    shape = operand.shape
    source, target = [str(strided.start.evaluate(values))], "0"
    for dim, stride in enumerate(strided.strides):
        source.append(f"j{dim} * {stride.evaluate(values)}")
        target = f"({target}) * {shape[dim]} + j{dim}" if dim else "j0"
    element = f"element({emitted.buffers[strided.base]}, {' + '.join(source)})"
    copy = [Line(f"store({name}, {target}, {element})")]
    for dim in reversed(range(len(shape))):
        copy = [Line(f"for j{dim} in range({shape[dim]}):"), *indent(copy)]
    lines += [Line(f"{name} = np.empty({shape}, {type_code(operand.dtype)})"), *copy]
    return name


def _opaque(emitted: Emitted, build: Build, value: Value, helpers: list[Line]) -> Line:
    """Return the line that has the interpreter do a step."""
    plan, buffers = emitted.plan, emitted.buffers
    readers = [
        operand_reader(operand, plan.elements, plan.kept, buffers, emitted.values)
        for operand in value.operands
    ]
    items = emitted.results_of(value)
    names = {position: buffers[item] for position, item in items.items()}
    do = opaque_step(value, readers, names, buffers.get(value, ""), build)
    used = []
    for operand in value.operands:
        strided = None if operand in plan.kept else plan.elements.strided(operand, plan.kept)
        name = buffers[operand if strided is None else strided.base]
        if name not in used:
            used.append(name)
    if value.operation == "matmul":
        used.append(buffers[value])
    given = tuple(names.values())

    shapes = {array.name: array.shape for array in emitted.arrays}

    def step(*arrays: Any) -> Any:
        pairs = zip(used, arrays, strict=True)
        memory: Memory = {name: array.reshape(shapes[name]) for name, array in pairs}
        do(memory)
        return tuple(memory[name] for name in given)

    key = _enter(step)
    declared = {names[position]: _numba_type(item) for position, item in items.items()}
    return _helper(key, used, declared, helpers)


def _helper(key: str, given: list[str], results: dict[str, str], helpers: list[Line]) -> Line:
    """Write a function that calls the interpreter, and return the line that calls it.

    It is no kernel of ours: where the GIL was released, Numba warns of calls of the interpreter.
    """
    name = f"step_{sum(line.code == '@njit' for line in helpers)}"
    declared = ", ".join(f"{result}={type_!r}" for result, type_ in results.items())
    # The interpreter looks names up in another module than this one.
    found = '__import__("numgrad.jit.emit.standalone", None, None, ["STEPS"]).STEPS'
    assigned = f"{', '.join(results)}, = " if results else ""
    returned = f"{', '.join(results)}," if results else "None"
    helpers += [
        Line(""),
        Line(""),
        Line("@njit"),
        Line(f"def {name}({', '.join(given)}):"),
        Line(f"    with objmode({declared}):"),
        Line(f"        {assigned}{found}[{key!r}]({', '.join(given)})"),
        Line(f"    return {returned}"),
    ]
    return Line(f"{assigned}{name}({', '.join(given)})")


def _enter(function: Any) -> str:
    key = f"{os.getpid()}-{os.urandom(6).hex()}-{next(_numbers)}"
    STEPS[key] = function
    return key


def _numba_type(value: Value) -> str:
    dims = ", ".join([":"] * len(value.shape)) if value.shape else ""
    if value.shape:
        last = dims[:-1] + "::1"
        return f"{value.dtype.name}[{last}]"
    return f"Array({value.dtype.name}, 0, 'C')"
