"""Generate standalone dispatchers, sizes written into them, to call from compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from numgrad.base.tuning import (
    INLINED_ELEMENTS,
    INLINED_STATEMENTS,
    LOOP_PRODUCT_TERMS,
    STACK_BYTES,
)
from numgrad.codegen.compile.compile import compile_source
from numgrad.codegen.loop_passes import statement_count
from numgrad.codegen.loops import (
    ONE,
    ZERO,
    Assign,
    Attribute,
    Do,
    Expression,
    For,
    Function,
    If,
    Load,
    Name,
    Number,
    Raise,
    Return,
    Statement,
    Store,
    Tuple,
    call,
    combine,
    names,
    plus,
    times,
    type_code,
)
from numgrad.codegen.printer import print_module
from numgrad.codegen.short_loops import on_stack
from numgrad.jit.emit.interpreted_steps import captured_array, interpreted_step
from numgrad.jit.emit.program_source import Array, Emitted, emit, used_by_steps
from numgrad.jit.emit.scalar_code import PART, new_array
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.jit.schedule.schedule import Nest

__all__ = ["is_short", "literal_dispatcher", "literal_loop"]

Build = Callable[[Graph], Any]

IN_REGISTERS = 64  # elements of an argument or result that is copied

_AS_ARGUMENT, _MULTIPLY, _KERNEL, _ZEROS = (
    *names("numgrad.codegen.loop_runtime", "as_argument"),
    *names("numgrad.kernels.matmul", "multiply"),
    *names("numgrad.codegen.compile.compile", "kernel"),
    *names("numpy", "zeros"),
)


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
    helpers: list[Function] = []
    main = _Standalone(emitted, graph, build, helpers).call(into)
    functions = [*helpers, main]
    size = statement_count(functions)
    is_inlined = not into and is_short(emitted) and size <= INLINED_STATEMENTS
    return compile_source("call", print_module(functions), for_loops=is_inlined)


def literal_loop(emitted: Emitted, graph: Graph, build: Build) -> Any:
    """Return a dispatcher that runs a graph for unit vectors in the place of its first input.

    It is called with the first of them and the last, excluded, the other inputs, and an array for
    all that each output becomes, along its first dim. All are C-contiguous, and nothing is checked.
    """
    helpers: list[Function] = []
    loop = _Standalone(emitted, graph, build, helpers, "loop_run").loop("loop")
    return compile_source("loop", print_module([*helpers, loop]))


def is_short(emitted: Emitted) -> bool:
    """Whether a call takes less than what LLVM would need to know to take it apart.

    Then the nests stand in the function itself, where it can.
    """
    return all(isinstance(step, Nest) for step in emitted.plan.steps) and all(
        prod(emitted.values[name] for name in nest.nest.domain) <= INLINED_ELEMENTS
        for nest in emitted.nests.values()
    )


class _Standalone:
    """Writes a program as a function for compiled code.

    Parameters
    ----------
    emitted : Emitted
    graph : Graph
    build : callable
        Makes the program of a graph within this one.
    helpers : list of Function
        What the function calls is added to them.
    run : str
        The name of the function of the nests, if they are not short.
    """

    def __init__(
        self,
        emitted: Emitted,
        graph: Graph,
        build: Build,
        helpers: list[Function],
        run: str = "run",
    ) -> None:
        self.emitted, self.graph, self.build, self.helpers = emitted, graph, build, helpers
        self.buffers, self.values, self.plan = emitted.buffers, emitted.values, emitted.plan
        self.is_short = is_short(emitted)
        self.read_by_steps = [self.buffers[value] for value in used_by_steps(emitted.plan)]
        self.run = call(Name(run), *emitted.parameters)
        if emitted.nests and not self.is_short:
            helpers.append(emitted.function(run, literal=True, decorator=_KERNEL))

    # --- functions ---

    def call(self, into: bool) -> Function:
        """Return the function of `literal_dispatcher`."""
        emitted, outputs = self.emitted, self.graph.outputs
        lines = self._given(self.graph.inputs)
        for array in emitted.arrays:
            if array.role != "output":
                continue
            if not array.shape or self._is_registered(array):  # if of no dims, returned as a number
                lines.append(on_stack(array.name, array.dtype, prod(array.shape)))
            elif not into:
                lines.append(new_array(array.name, array.shape, array.dtype))
        lines += [*self._room(), *self._steps()]
        results: list[Expression] = []
        for k, output in enumerate(outputs):
            name = self.buffers[output]
            if not output.shape:
                results.append(Load(Name(name), ZERO))
                continue
            returned = self._array_name(output)
            is_shared = output.operation in ("input", "array") or output in outputs[:k]
            if returned != name and not is_shared:
                if not into:
                    lines.append(new_array(returned, output.shape, output.dtype))
                lines.append(_copied(returned, name, output))
            if not into:
                result = Name(returned)
                results.append(call(Attribute(result, "copy")) if is_shared else result)
        lines.append(Return(Tuple(tuple(results))))
        parameters = [f"{self.buffers[value]}_" for value in self.graph.inputs]
        if into:
            parameters += [self._array_name(value) for value in outputs if value.shape]
        return Function("call", parameters, lines)

    def loop(self, name: str, decorator: Name | None = None) -> Function:
        """Return the function of `literal_loop`."""
        vector, *inputs = self.graph.inputs
        lines: list[Statement]
        count, unit = prod(vector.shape), Name(self.buffers[vector])
        if self._array_name(vector) != unit.id:
            cleared = For("at", ZERO, Number(count), [Store(unit, Name("at"), ZERO)])
            lines = [on_stack(unit.id, vector.dtype, count), cleared]
        else:
            lines = [Assign(unit.id, call(_ZEROS, vector.shape, type_code(vector.dtype)))]
        lines += self._given(inputs, known=True)
        before: list[Statement] = []
        after: list[Statement] = []
        written: set[str] = set()
        shapes = {array.name for array in self.emitted.arrays if array.role == "output"}
        for k, output in enumerate(self.graph.outputs):
            array, size = self.buffers[output], prod(output.shape)
            place = combine("*", "k", size)
            if array in shapes and array not in written:
                written.add(array)
                if output.shape and not self._is_registered(output):
                    at = combine("*", place, output.dtype.itemsize)
                    part = call(PART, f"all_{k}", at, size, type_code(output.dtype))
                    before.append(Assign(array, part))
                    continue
                lines.append(on_stack(array, output.dtype, max(1, size)))
            of_output = Store(Name(f"all_{k}"), plus(place, "at"), Load(Name(array), Name("at")))
            after.append(For("at", ZERO, Number(size), [of_output]))
        lines += self._room()
        body = [Store(unit, Name("k"), ONE), *before, *self._steps(), *after]
        body.append(Store(unit, Name("k"), ZERO))
        lines += [For("k", Name("start"), Name("stop"), body)]
        parameters = ["start", "stop", *(f"{self.buffers[value]}_" for value in inputs)]
        parameters += [f"all_{k}" for k in range(len(self.graph.outputs))]
        return Function(name, parameters, lines, decorator)

    # --- arrays ---

    def _given(self, inputs: Sequence[Value], *, known: bool = False) -> list[Statement]:
        """Check the arguments, and put short ones into registers.

        If they are `known`, the caller has made them as they have to be, but for the number of
        dims.
        """
        lines: list[Statement] = []
        for position, value in enumerate(inputs):
            name, given = self.buffers[value], self._array_name(value)
            argument: Expression = Name(f"{name}_")
            if not known:
                argument = call(_AS_ARGUMENT, argument, type_code(value.dtype), position)
            lines.append(Assign(given, argument))
            if not known:
                shape = f"the shape {value.shape} it was traced with"
                error = Raise("ValueError", f"argument {position} must have {shape}")
                is_other = combine("!=", Attribute(Name(given), "shape"), value.shape)
                lines.append(If(is_other, [error]))
            if given != name:
                lines.append(on_stack(name, value.dtype, prod(value.shape)))
                lines.append(_copied(name, given, value))
        return lines

    def _room(self) -> list[Statement]:
        """Make what else the steps need, and fetch what was captured."""
        emitted = self.emitted
        lines: list[Statement] = [
            new_array(array.name, (0,) * len(array.shape), array.dtype)
            for array in emitted.arrays
            if array.role == "result"
        ]
        lines.append(on_stack("header", np.dtype(np.int64), 4))
        lines += [_into_header(2, 0), _into_header(3, -1)]
        if 0 < emitted.room_bytes <= STACK_BYTES:
            lines.append(on_stack("room", np.dtype(np.int64), -(-emitted.room_bytes // 8)))
        else:
            lines.append(new_array("room", emitted.room_bytes, np.dtype(np.uint8)))
        for array in emitted.arrays:
            if array.role == "room" and array.name in self.read_by_steps:
                at, count = self.values[f"at_{array.name}"], prod(array.shape)
                part = call(PART, "room", at, count, type_code(array.dtype))
                lines.append(Assign(array.name, part))
        for value, name in self.buffers.items():
            if value.operation == "array":
                lines.append(captured_array(name, value, self.helpers))
        return lines

    def _is_registered(self, array: Value | Array) -> bool:
        """Whether an array is held where no other array can be, best in registers.

        LLVM vectorises short loops only if it need not ask whether arrays share memory.
        """
        return self.is_short and 0 < prod(array.shape) <= IN_REGISTERS

    def _array_name(self, value: Value) -> str:
        """Return the name of an argument or a result as an array of its own."""
        name = self.buffers[value]
        outside = value.operation != "array" and value.shape
        return f"{name}_array" if outside and self._is_registered(value) else name

    # --- steps ---

    def _steps(self) -> list[Statement]:
        steps = self.plan.steps
        if self.is_short:
            body = self.emitted.body(literal=True, short=True)
            return [_into_header(0, 0), _into_header(1, len(steps)), *body]
        lines: list[Statement] = []
        start: int | None = None
        for position, step in enumerate([*steps, None]):
            if isinstance(step, Nest):
                start = position if start is None else start
                continue
            if start is not None:
                lines += [_into_header(0, start), _into_header(1, position), Do(self.run)]
                start = None
            if step is not None:
                lines += self._opaque_step(step.value)
        return lines

    def _opaque_step(self, value: Value) -> list[Statement]:
        if (
            value.operation == "matmul"
            and _terms(value) <= LOOP_PRODUCT_TERMS
            and 0 not in value.shape
        ):
            return [self._small_product(value)]
        if isinstance(value.attributes.get("primitive"), Rows):
            return self._unit_vectors(value)
        return [interpreted_step(self.emitted, value, self.build, self.helpers)]

    def _small_product(self, value: Value) -> Statement:
        """Return what computes a matrix product without the interpreter."""
        plan, buffers = self.plan, self.buffers
        given: list[Any] = []
        for operand in value.operands:
            strided = plan.elements.strided(operand, plan.kept)
            if operand in plan.kept or strided is None:
                given += [buffers[operand], 0, operand.shape[1], 1]
                continue
            given += [buffers[strided.base], strided.start.evaluate(self.values)]
            given += [stride.evaluate(self.values) for stride in strided.strides]
        sizes = [value.shape[0], value.operands[0].shape[1], value.shape[1]]
        zero = call(type_code(value.dtype), 0)
        return Do(call(_MULTIPLY, *given, buffers[value], *sizes, zero))

    def _unit_vectors(self, value: Value) -> list[Statement]:
        """Return what does a step for unit vectors one after the other."""
        rows = value.attributes["primitive"]
        graph = rows.graph
        name = f"loop_{sum(f.name.startswith('loop_') for f in self.helpers)}"
        loop = _Standalone(emit(graph), graph, self.build, self.helpers, f"{name}_run")
        self.helpers.append(loop.loop(name, _KERNEL))
        lines: list[Statement] = []
        given = [self._compact(operand, lines) for operand in value.operands]
        results = self.emitted.results_of(value)
        for position, output in enumerate(graph.outputs):
            found = f"unread_{position}"
            if position in results:
                found = self.buffers[results[position]]
            lines.append(new_array(found, (rows.count, *output.shape), output.dtype))
            given.append(found)
        return [*lines, Do(call(Name(name), 0, rows.count, *given))]

    def _compact(self, operand: Value, lines: list[Statement]) -> str:
        """Return the name of the array of an operand; copy it if it lies apart."""
        plan, shape = self.plan, operand.shape
        strided = None if operand in plan.kept else plan.elements.strided(operand, plan.kept)
        if strided is None:
            return self.buffers[operand]
        name = f"compact_{sum(isinstance(line, Assign) for line in lines)}"
        source: list[Any] = [strided.start.evaluate(self.values)]
        target: Expression = ZERO
        for dim, stride in enumerate(strided.strides):
            source.append(times(f"j{dim}", stride.evaluate(self.values)))
            target = plus(times(target, shape[dim]), f"j{dim}") if dim else Name("j0")
        element = Load(Name(self.buffers[strided.base]), plus(*source))
        copy: Statement = Store(Name(name), target, element)
        for dim in reversed(range(len(shape))):
            copy = For(f"j{dim}", ZERO, Number(shape[dim]), [copy])
        lines += [new_array(name, shape, operand.dtype), copy]
        return name


def _into_header(position: int, number: int) -> Statement:
    return Store(Name("header"), Number(position), Number(number), subscript=True)


def _copied(target: str, source: str, value: Value) -> Statement:
    at = Name("at")
    copy = Store(Name(target), at, Load(Name(source), at))
    return For("at", ZERO, Number(prod(value.shape)), [copy])


def _terms(product: Value) -> int:
    """Return how many multiplications a matrix product takes."""
    return prod(product.shape) * product.operands[0].shape[1]
