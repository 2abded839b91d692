"""Generate standalone dispatchers, sizes written into them, to call from compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from numgrad.base.tuning import INLINED_STATEMENTS, STACK_BYTES
from numgrad.codegen.compile.compile import compile_functions
from numgrad.codegen.loop_distribution import on_stack
from numgrad.codegen.loop_passes import in_order, names_in, statement_count
from numgrad.codegen.loops import (
    ONE,
    ZERO,
    Assign,
    Attribute,
    Break,
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
from numgrad.jit.emit.body_loops import copied, loop_function
from numgrad.jit.emit.interpreted_steps import captured_array, interpreted_step, with_recipe
from numgrad.jit.emit.interruptions import ENDED, none_ended, raise_ended, raising
from numgrad.jit.emit.native_calls import native_call, native_statements
from numgrad.jit.emit.native_draws import native_draw
from numgrad.jit.emit.native_steps import (
    IN_REGISTERS,
    is_matrix_product,
    is_native,
    is_small,
    is_small_step,
    is_written_down,
)
from numgrad.jit.emit.products import product
from numgrad.jit.emit.program_source import Array, Emitted, emit
from numgrad.jit.emit.scalar_code import PART, new_array, plain_code
from numgrad.jit.ir.graph import Graph, Value
from numgrad.jit.lowering.draws import Drawing
from numgrad.jit.lowering.loops import Loop
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.jit.passes.views import is_contiguous
from numgrad.jit.schedule.nests import Nest
from numgrad.kernels.matrices.unrolled import UnrolledCall

__all__ = ["standalone_dispatcher", "standalone_loop"]

Build = Callable[..., Any]

_AS_ARGUMENT, _DISTINCT, _WORDS_OF, _GO_ON, _ZEROS = (
    *names("numgrad.codegen.loop_runtime", "as_argument", "distinct"),
    *names("numgrad.kernels.random", "words_of", "go_on"),
    *names("numpy", "zeros"),
)


def standalone_dispatcher(
    emitted: Emitted,
    graph: Graph,
    build: Build,
    *,
    into: bool = False,
    sources: Sequence[tuple[int, int]] = (),
) -> Any:
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
    sources : sequence of (int, int)
        Which inputs are states of generators of random numbers, and which outputs are the states
        behind them. The arguments are NumPy's generators then, and go on from there.
    """
    helpers: list[Function] = []
    main = _Standalone(emitted, graph, build, helpers).call(into, dict(sources))
    functions = [*helpers, main]
    size = statement_count(functions)
    is_inlined = not into and is_small(emitted) and size <= INLINED_STATEMENTS
    made = compile_functions(functions, for_loops=is_inlined)
    return with_recipe(made, helpers, build, graph, sources)


def standalone_loop(emitted: Emitted, build: Build, loop: Any) -> Any:
    """Return a dispatcher that does a loop, whose body a graph is.

    Parameters
    ----------
    emitted : Emitted
        What was emitted for the body.
    build : callable
    loop : Rows or Loop
        Of `Rows` it is called with the first vector and the last, excluded, what was captured, and
        an array for all that each output becomes; of a `Loop` with its operands, and an array for
        each result. All are C-contiguous, and nothing is checked.
    """
    helpers: list[Function] = []
    function = _loop_function(loop, emitted, build, helpers, "loop")
    return compile_functions([*helpers, *raising(function)])


def _loop_function(
    loop: Any, emitted: Emitted, build: Build, helpers: list[Function], name: str
) -> Function:
    body = _Standalone(emitted, loop.graph, build, helpers, f"{name}_", is_body=True)
    return loop_function(body, loop, name)


class _Standalone:
    """Writes a program as a function for compiled code.

    Parameters
    ----------
    emitted : Emitted
    graph : Graph
    build : callable
        Makes the program of a graph within this one.
    helpers : list of Function
        What the function calls is added to them, by names that begin with `name`.
    is_body : bool
        Whether it is done in the turns of a loop.
    """

    def __init__(
        self,
        emitted: Emitted,
        graph: Graph,
        build: Build,
        helpers: list[Function],
        name: str = "",
        is_body: bool = False,
    ) -> None:
        self.emitted, self.graph, self.build, self.helpers = emitted, graph, build, helpers
        self.buffers, self.values, self.plan = emitted.buffers, emitted.values, emitted.plan
        self.is_small = emitted.has_few(emitted.nests) and all(
            isinstance(step, Nest) or is_small_step(step.value) for step in self.plan.steps
        )
        self.name, self.is_body, self.can_end = name, is_body, False
        self.memory: list[Statement] = []  # what makes room for results of steps, once
        self.numbers = count()  # of what is named here
        self.outside: set[str] = set()  # results that the caller has made
        self.returned: set[str] = set()  # arrays that are handed to the caller

    # --- functions ---

    def call(self, into: bool, sources: Mapping[int, int]) -> Function:
        """Return the function of `standalone_dispatcher`."""
        emitted, outputs = self.emitted, self.graph.outputs
        self.returned = {self.array_name(value) for value in outputs if value.shape}
        if into:
            self.outside = self.returned
        lines = self.given(self.graph.inputs, sources=sources)
        for array in emitted.arrays:
            if array.role != "output":
                continue
            if not array.shape or self.is_registered(array):  # if of no dims, returned as a number
                lines.append(on_stack(array.name, array.dtype, prod(array.shape)))
            elif not into:
                lines.append(new_array(array.name, array.shape, array.dtype))
        steps = self.steps()
        lines += [*self.room(), *none_ended(self.can_end), *steps]
        results: list[Expression] = []
        for position, k in sources.items():
            generator = f"{self.buffers[self.graph.inputs[position]]}_"
            lines.append(Do(call(_GO_ON, generator, self.buffers[outputs[k]])))
        for k, output in enumerate(outputs):
            name = self.buffers[output]
            if k in sources.values():
                continue
            if not output.shape:
                results.append(Load(Name(name), ZERO))
                continue
            returned = self.array_name(output)
            is_shared = output.operation in ("input", "array") or output in outputs[:k]
            if returned != name and not is_shared:
                if not into:
                    lines.append(new_array(returned, output.shape, output.dtype))
                lines += copied(returned, name, output)
            if not into:
                result = Name(returned)
                results.append(call(Attribute(result, "copy")) if is_shared else result)
        lines += [*raise_ended(self.can_end), Return(Tuple(tuple(results)))]
        parameters = [f"{self.buffers[value]}_" for value in self.graph.inputs]
        if into:
            parameters += [self.array_name(value) for value in outputs if value.shape]
        return Function("call", parameters, lines)

    # --- arrays ---

    def given(
        self,
        inputs: Sequence[Value],
        *,
        known: bool = False,
        sources: Mapping[int, int] = MappingProxyType({}),
    ) -> list[Statement]:
        """Check the arguments, and put short ones into registers.

        If they are `known`, the caller has made them as they have to be, but for the number of
        dims. Of `sources` the keys are the positions of those that are generators.
        """
        lines: list[Statement] = []
        for position, value in enumerate(inputs):
            name, given = self.buffers[value], self.array_name(value)
            argument: Expression = Name(f"{name}_")
            if position in sources:
                lines.append(Assign(given, call(_WORDS_OF, argument, position)))
                if given != name:
                    lines.append(on_stack(name, value.dtype, prod(value.shape)))
                    lines += copied(name, given, value)
                continue
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
                lines += copied(name, given, value)
        return lines

    def room(self) -> list[Statement]:
        """Make what else the steps need, which are written before, and fetch what was captured."""
        emitted = self.emitted
        lines = list(self.memory)
        parts = [each for each in emitted.arrays if each.role == "room"]
        if emitted.room_bytes > STACK_BYTES:
            lines.append(new_array("room", emitted.room_bytes, np.dtype(np.uint8)))
        elif emitted.room_bytes or parts:  # which may be of no elements
            words = max(-(-emitted.room_bytes // 8), 1)
            lines.append(on_stack("room", np.dtype(np.int64), words))
        for array in [] if self.is_small else parts:
            at, count = self.values[f"at_{array.name}"], prod(array.shape)
            part = call(PART, "room", at, count, type_code(array.dtype))
            lines.append(Assign(array.name, part))
        for value, name in self.buffers.items():
            if value.operation == "array":
                lines += self._array(name, value)
        return lines

    def _array(self, name: str, value: Value) -> list[Statement]:
        """Write down the few numbers of an array that the function made, or fetch what it holds."""
        array, size = value.attributes["array"], prod(value.shape)
        if value in self.graph.outputs or not is_written_down(value):
            return [captured_array(name, value, self.helpers)]
        numbers = [plain_code(number, value.dtype) for number in array.ravel()]
        stores = [Store(Name(name), Number(k), number) for k, number in enumerate(numbers)]
        return [on_stack(name, value.dtype, size), *stores]

    def is_registered(self, array: Value | Array) -> bool:
        """Whether an array is held where no other array can be, best in registers.

        LLVM vectorises short loops only if it need not ask whether arrays share memory.
        """
        return self.is_small and 0 < prod(array.shape) <= IN_REGISTERS

    def array_name(self, value: Value) -> str:
        """Return the name of an argument or a result as an array of its own."""
        name = self.buffers[value]
        outside = value.operation != "array" and value.shape
        return f"{name}_array" if outside and self.is_registered(value) else name

    # --- steps ---

    def steps(self) -> list[Statement]:
        steps = self.plan.steps
        if self.is_small:
            return self.emitted.unrolled_body(self._small_step)
        lines: list[Statement] = []
        start: int | None = None
        for position, step in enumerate([*steps, None]):
            if isinstance(step, Nest):
                start = position if start is None else start
                continue
            if start is not None:
                lines += self._nests(range(start, position))
                start = None
            if step is not None:
                lines += self._opaque_step(step.value)
        return lines

    def _nests(self, steps: range) -> list[Statement]:
        """Return what runs the nests of consecutive steps, in a function of their own."""
        part = self.emitted.part(f"{self.name}run_{steps.start}", steps)
        arrays = self.emitted.arrays_of(steps)
        return [Do(call(self._helper(part), *arrays))]

    def _opaque_step(self, value: Value) -> list[Statement]:
        if is_matrix_product(value) and is_native(value):
            return self._small_products(value)
        loop = value.attributes.get("primitive")
        if isinstance(loop, Rows | Loop):
            return self._loop(value, loop)
        if isinstance(loop, Drawing) and (fill := native_draw(loop)) is not None:
            return self._draw(value, loop, *fill)
        if (found := native_call(value)) is not None:
            return self._matrices(value, found)
        return [interpreted_step(self.emitted, value, self.build, self.helpers)]

    def _draw(
        self, value: Value, drawing: Drawing, fill: Name, parameters: Sequence[Number]
    ) -> list[Statement]:
        """Return what draws random numbers without the interpreter."""
        lines: list[Statement] = []
        before = self._compact(value.operands[0], lines)
        names = []
        for (shape, dtype), result in zip(drawing.metas(), self._results(value, 2), strict=True):
            names.append(result)
            if result not in self.outside:
                self.memory.append(new_array(result, shape, dtype))
        numbers, words = names
        lines += copied(words, before, value.operands[0])
        return [*lines, Do(call(fill, words, numbers, prod(drawing.shape), *parameters))]

    def _results(self, value: Value, count: int) -> list[str]:
        """Return the names of the arrays of the results of a call."""
        results = self.emitted.results_of(value)
        return [
            self.buffers[results[k]] if k in results else f"unread_{next(self.numbers)}"
            for k in range(count)
        ]

    def _small_step(self, value: Value) -> list[Statement]:
        """Return what does a step of few statements."""
        found = native_call(value)
        if found is None:
            return self._small_product(value)
        return self._native_call(value, found, f"m{next(self.numbers)}_")

    def _matrices(self, value: Value, found: UnrolledCall) -> list[Statement]:
        """Return what does a call for a batch of matrices, in a function of its own."""
        lines = self._native_call(value, found, "one_")
        arrays = [each for each in names_in(lines) if not each.startswith("one_")]
        body, new = in_order([Do(call(_DISTINCT)), *lines], arrays)
        name = f"{self.name}matrices_{next(self.numbers)}"
        function = Function(name, [new[array] for array in arrays], body)
        return [Do(call(self._helper(function), *arrays))]

    def _native_call(self, value: Value, found: UnrolledCall, prefix: str) -> list[Statement]:
        """Return what does a call of a primitive, with names that begin with a prefix."""
        metas = found.metas()
        wanted = set(self.emitted.results_of(value))
        if found.checked is not None and found.failed is not None:
            wanted.add(found.failed)
        results = self._results(value, len(metas))
        for k in sorted(wanted):
            if results[k] not in self.outside:
                self.memory.append(self._result(results[k], *metas[k]))
        operands = [self._lies(operand) for operand in value.operands]
        return native_statements(found, operands, {k: results[k] for k in sorted(wanted)}, prefix)

    def _small_products(self, value: Value) -> list[Statement]:
        """Return what computes matrix products, of a batch or one, without the interpreter."""
        (a, at_a, of_a), (b, at_b, of_b) = map(self._lies, value.operands)
        left, right = (operand.shape for operand in value.operands)
        batch, sizes = left[:-2], (left[-2], left[-1], right[-1])
        dtype = value.operands[0].dtype
        if value.operation == "matmul":
            out = self.buffers[value]
        else:
            (out,) = self._results(value, 1)
            if out not in self.outside:
                self.memory.append(self._result(out, (*left[:-1], right[-1]), dtype))
        name = f"{self.name}product_{next(self.numbers)}"
        function = product(name, (of_a[-2:], of_b[-2:]), sizes, dtype)
        indices = [f"{name}_{dim}" for dim in range(len(batch))]
        of_out = [prod((*batch[d + 1 :], left[-2], right[-1])) for d in range(len(batch))]
        places: list[Any] = []
        for array, at, strides in ((a, at_a, of_a), (b, at_b, of_b), (out, 0, of_out)):
            steps = [times(i, step) for i, step in zip(indices, strides, strict=False) if step]
            places += [array, plus(at, *steps)]
        done: Statement = Do(call(self._helper(function), *places))
        for index, length in reversed(list(zip(indices, batch, strict=True))):
            done = For(index, ZERO, Number(length), [done])
        return [done]

    def _lies(self, operand: Value) -> tuple[str, int, tuple[int, ...]]:
        """Return in which array an operand of a step lies, where, and its strides."""
        plan, buffers, shape = self.plan, self.buffers, operand.shape
        strided = plan.elements.strided(operand, plan.kept)
        if operand in plan.kept or strided is None:
            return buffers[operand], 0, tuple([prod(shape[d + 1 :]) for d in range(len(shape))])
        strides = tuple([stride.evaluate(self.values) for stride in strided.strides])
        return buffers[strided.base], strided.start.evaluate(self.values), strides

    def _small_product(self, value: Value) -> list[Statement]:
        """Return what computes a matrix product of few terms, in the order of `product`."""
        (a, at_a, (a0, a1)), (b, at_b, (b0, b1)) = map(self._lies, value.operands)
        rows, columns = value.shape
        total: Expression = call(type_code(value.dtype), 0)
        for k in range(value.operands[0].shape[1]):
            left = Load(Name(a), plus(times("i", a0), at_a + k * a1))
            right = Load(Name(b), plus(times("j", b1), at_b + k * b0))
            total = combine("+", total, combine("*", left, right))
        element = Store(Name(self.buffers[value]), plus(times("i", columns), "j"), total)
        return [For("i", ZERO, Number(rows), [For("j", ZERO, Number(columns), [element])])]

    def _helper(self, function: Function) -> Name:
        """Return the name of a function, or of one before that does the same."""
        same = [
            each
            for each in self.helpers
            if each.body == function.body and each.parameters == function.parameters
        ]
        if not same:
            self.helpers.append(function)
        return Name((same or [function])[0].name)

    def _loop(self, value: Value, loop: Rows | Loop) -> list[Statement]:
        """Return what does a loop."""
        name = f"{self.name}loop_{next(self.numbers)}"
        emitted = emit(loop.graph, loop.own)
        function = _loop_function(loop, emitted, self.build, self.helpers, name)
        self.helpers.append(function)
        lines: list[Statement] = []
        given: list[Any] = [0, loop.count] if isinstance(loop, Rows) else []
        given += [self._compact(operand, lines) for operand in value.operands]
        metas = loop.metas()
        results = self._results(value, len(metas))
        for position, (found, (shape, dtype)) in enumerate(zip(results, metas, strict=True)):
            if isinstance(loop, Loop) and loop.grows(position):
                turns = Load(Name(given[loop.fixed - 1]), ZERO)
                sizes = Tuple((turns, *map(Number, shape[1:])))
                lines.append(new_array(found, sizes, dtype))
            elif found not in self.outside:
                self.memory.append(self._result(found, shape, dtype))
            given.append(found)
        run = call(Name(name), *given)
        if isinstance(function.body[-1], Return):
            self.can_end = True
            return [*lines, If(run, [Assign(ENDED, ONE), *[Break()] * self.is_body])]
        return [*lines, Do(run)]

    def _result(self, name: str, shape: tuple[int, ...], dtype: Any) -> Statement:
        """Return what makes memory for a result of a loop; a short one is copied where it goes."""
        size = prod(shape)
        if name not in self.returned and 0 < size <= IN_REGISTERS:
            return on_stack(name, dtype, size)
        return new_array(name, shape, dtype)

    def _compact(self, operand: Value, lines: list[Statement]) -> str:
        """Return the name of an operand's array, or of its part of one; copy what lies apart."""
        plan, shape = self.plan, operand.shape
        strided = None if operand in plan.kept else plan.elements.strided(operand, plan.kept)
        if strided is None:
            return self.buffers[operand]
        name = f"compact_{next(self.numbers)}"
        start = strided.start.evaluate(self.values)
        strides = [stride.evaluate(self.values) for stride in strided.strides]
        if shape and is_contiguous(shape, 0, strides):  # as rows are that a loop begins later with
            at, base = start * operand.dtype.itemsize, self.buffers[strided.base]
            part = call(PART, base, at, prod(shape), type_code(operand.dtype))
            lines.append(Assign(name, part))
            return name
        source: list[Any] = [start]
        target: Expression = ZERO
        for dim, stride in enumerate(strides):
            source.append(times(f"j{dim}", stride))
            target = plus(times(target, shape[dim]), f"j{dim}") if dim else Name("j0")
        element = Load(Name(self.buffers[strided.base]), plus(*source))
        copy: Statement = Store(Name(name), target, element)
        for dim in reversed(range(len(shape))):
            copy = For(f"j{dim}", ZERO, Number(shape[dim]), [copy])
        self.memory.append(new_array(name, shape, operand.dtype))
        lines.append(copy)
        return name
