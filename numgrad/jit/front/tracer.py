"""The tracer: run a function on symbolic arrays and record the graph of what it computes.

While a `Tracer` is open on a thread, every operation comes to it: it makes the result's array, with
no numbers in it, and notes the value that belongs there. Views and writes in place need no rule of
their own: a view is a place in a storage, and a write gives the storage a new value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NoReturn

import numpy as np

from numgrad.base.dtypes import of_numpy
from numgrad.graph.modes.state import modes, restore, watch
from numgrad.graph.recorder import (
    Traced,
    TraceError,
    instead_of,
    place_of,
)
from numgrad.graph.tensor import Tensor, wrap
from numgrad.jit.backward.loops import BackwardLoops
from numgrad.jit.backward.turns import reached
from numgrad.jit.front.control_flow.control import RECORDING
from numgrad.jit.front.control_flow.grown_stacks import GrownStacks, by_rows
from numgrad.jit.front.control_flow.loop_calls import (
    FirstTurn,
    Inputs,
    LoopCall,
    cut_loop,
    stand_ins,
)
from numgrad.jit.front.refusals import depends_on_arguments, words_of_refusal
from numgrad.jit.front.states import States
from numgrad.jit.front.traced_values import TracedValues
from numgrad.jit.ir.constructors import broadcast, cast, constant, reshape
from numgrad.jit.ir.graph import Value
from numgrad.jit.ir.memory_order import (
    Order,
    deciding,
    followed,
    order_of,
    place_like,
)
from numgrad.jit.lowering.bodies import cut_out
from numgrad.jit.lowering.draws import STATE_DTYPE, STATE_SHAPE, Drawing
from numgrad.jit.lowering.indexing import CHECKS, GATHERINGS
from numgrad.jit.lowering.movement import MOVES
from numgrad.jit.lowering.opaque_calls import ARRAYS, Whole, lift, results_of
from numgrad.jit.lowering.primitives import LOWERINGS, lower_elementwise
from numgrad.jit.lowering.reductions import IN_MEMORY_ORDER, REDUCTIONS
from numgrad.jit.lowering.storage import write_place
from numgrad.jit.lowering.unit_vectors import Rows
from numgrad.kernels.move.memory_order import empty_by, empty_like
from numgrad.kernels.move.stacked_rows import room_for_rows
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.creation.generator import Generator
from numgrad.runtime.garbage import without_collections

__all__ = ["Tracer"]

Array = np.ndarray[Any, Any]

Leaves = list[Any]  # tensors, and None where a pytree has it

_LOWERINGS = {**LOWERINGS, **REDUCTIONS, **GATHERINGS, **MOVES}
# Operations whose result's shape depends on the operands' numbers.
_OF_UNKNOWN_SHAPE = frozenset(("masked_select",))


class Tracer(TracedValues):
    """A recorder (see `numgrad.graph.open_recorder.Recorder`) that builds the values of a graph."""

    transforms = False
    has_numbers = False
    recording = RECORDING

    def __init__(self) -> None:
        super().__init__()
        # The arguments by whose strides something was decided.
        self.depends_on: frozenset[int] = frozenset()
        self._stacks = GrownStacks()
        self.unread: set[Value] = set()  # see `Graph`
        # Where generators of random numbers are by now.
        self.states = States(self)
        self._failure: TraceError | None = None
        self.described: set[str] = set()  # what was said of tensors, as text
        self.unrecorded = False  # whether the user switched recording off

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have this thread's operations recorded here.

        Raises
        ------
        TraceError
            If one was raised, though it was caught, or another error came of it.
        """
        names = ("trace", "saved_hooks", "watching", "unrecorded", "stretch", "overwritten")
        before = {name: getattr(modes, name) for name in names}
        modes.trace, modes.saved_hooks = self, ()  # what is traced is saved by nobody yet
        # It is for callers that differentiate nothing, too.
        modes.unrecorded = modes.stretch = modes.overwritten = None
        watch(self, sees_calls=True)
        try:
            with without_collections():
                yield
            if self._failure is not None:
                raise self._failure
        except Exception:
            if self._failure is None:
                raise
            raise self._failure from None
        finally:
            self._failure = None  # its traceback leads here
            restore({**modes.__dict__, **before})  # with hooks that were entered and not left
            self.forget()

    # --- what numgrad.graph.open_recorder.Recorder asks for ---------------------------------------

    def operands(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the operands as they are."""
        return operands

    def joined(self) -> AbstractContextManager[None]:
        """Do nothing: so they hang where they do."""
        return nullcontext()

    def elementwise(
        self,
        primitive: ElementwisePrimitive,
        shape: tuple[int, ...],
        arrays: Sequence[Any],
        dtype: np.dtype[Any],
    ) -> Traced:
        """Record an elementwise primitive."""
        count = self._stacks.length_of(arrays)
        if count is not None:
            return by_rows(self, self._stacks, count, primitive, arrays, dtype)
        origin = self.origin(primitive.function_name)
        operands = [self.value_of(array) if type(array) in ARRAYS else array for array in arrays]
        result = broadcast(lower_elementwise(primitive, operands, dtype, origin), shape)
        if len(shape) < 2:
            return self._array(result)
        given = [array for array in arrays if type(array) in ARRAYS]
        follows = followed(given) if primitive.deciding is not None else deciding(shape, given)
        place = empty_by(primitive.order_of(shape, arrays), shape, dtype)
        return self._array(result, place, follows)

    def call(self, primitive: Primitive, arrays: Sequence[Any], parameters: dict[str, Any]) -> Any:
        """Record any other primitive; views are found by running it on places."""
        if self._stacks.length_of(arrays) is not None:
            self._fail(
                f"{primitive.name} of what a while_loop stacked for its gradient is not compiled"
            )
        if primitive.view:
            return self._view(primitive, arrays, parameters)
        lower = _LOWERINGS.get(primitive.name)
        if lower is not None:
            operands = [self.value_of(array) for array in arrays]
            known = {name: self._known(value) for name, value in parameters.items()}
            if primitive.name in IN_MEMORY_ORDER:
                known["order"] = self._order(arrays[0])
            try:
                result = lower(*operands, **known)
            except NotImplementedError:  # a case that the lowering leaves to the kernel
                pass
            else:
                place, follows = place_like(primitive, arrays, parameters)
                origin = self.origin(primitive.name)
                if isinstance(result, tuple):
                    values = [_with_origin(value, origin) for value in result]
                    return tuple([self._array(value, None, follows) for value in values])
                return self._array(_with_origin(result, origin), place, follows, primitive.gaps)
        return self._call(primitive, arrays, parameters)

    def _order(self, array: Any) -> Order | None:
        """Return the order in memory of what is reduced; None if row by row.

        In that order a reduction rounds, so it depends on how the array lies.
        """
        place = place_of(array)
        if place.size < 2 or place.dtype.kind not in "fc":
            return None
        self.depend_on_strides(followed([array]))
        return order_of(place)

    def cast(self, array: Traced, dtype: np.dtype[Any], order: str) -> Traced:
        """Record a cast, or for the same dtype a copy."""
        value = cast(self.value_of(array), dtype, self.origin("to"))
        follows = array.storage.follows if order == "K" else frozenset()
        return self._array(value, _copied(array.place, dtype, order), follows)

    def reshape(self, array: Traced, shape: tuple[int, ...]) -> Traced:
        """Record a copy in another shape."""
        return self._array(reshape(self.value_of(array), shape), None, array.storage.follows)

    def laid_out(self, array: Traced, place: Array, *sources: Any) -> Traced:
        """Return a copy that lies as a place does."""
        return self._array(self.value_of(array), place, followed(sources))

    def depend_on_strides(self, arguments: frozenset[int]) -> None:
        """Note that something was decided by how these arguments lie."""
        self.depends_on |= arguments

    def write(self, target: Traced, value: Any) -> None:
        """Give the storage of `target` a value with another part there."""
        storage, place = target.storage, target.place
        self.depends_on |= storage.shared_by
        if self._own and storage not in self._own[-1]:
            self._fail(
                "the body of a loop may not write to what it did not make: what it hands on is "
                "what it returns. clone() it first"
            )
        if any(storage is argument for argument in self._arguments):
            self._fail(
                "jit: the function writes to one of its arguments. That can't be compiled: clone() "
                "it first, and return the result"
            )
        whole = storage.whole
        if type(value) is not Traced and np.ndim(value) == 0:
            part = constant(np.asarray(value).item(), place.dtype)
        else:
            part = cast(self.value_of(value), place.dtype)
        part = broadcast(part, place.shape)
        storage.value = write_place(storage.value, whole, place, part)

    def each_row(
        self,
        function: Callable[[Tensor], Sequence[Tensor | None]],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> list[Tensor | None] | None:
        """Record a loop over unit vectors."""
        vector = Value("input", (), shape, dtype, position=0)
        row: Any = self._array(vector)
        before = self.states.now()
        results = function(wrap(row))
        if self.states.now() != before:
            self._fail("a gradient that draws random numbers is not compiled row by row")
        present = [result for result in results if result is not None]
        if any(result.requires_grad for result in present):
            return None
        graph, captured = cut_out([vector], [self.value_of(each._array) for each in present])
        metas = [((math.prod(shape), *each._array.shape), each._array.dtype) for each in present]
        stacked = results_of(Rows(graph), captured, metas, self.origin("rows"))
        count = math.prod(shape)
        arrays: list[Any] = []
        for value, each in zip(stacked, present, strict=True):
            row = each._array
            place = room_for_rows(count, row.place, value.dtype)
            arrays.append(self._array(value, place, row.storage.follows))
        found = iter([wrap(array) for array in arrays])
        return [None if each is None else next(found) for each in results]

    def scan(
        self,
        step: Callable[[Leaves, Leaves], tuple[Leaves, Leaves]],
        carry: Leaves,
        columns: Leaves,
        length: int,
        reverse: bool,
        divided: bool = False,
    ) -> tuple[Leaves, Leaves]:
        """Record a loop with carries."""
        return self.recording.scan(self, step, carry, columns, length, reverse, divided)

    def while_loop(
        self,
        predicate: Callable[[Leaves], Any],
        step: Callable[[Leaves], Leaves],
        carry: Leaves,
    ) -> Leaves:
        """Record a loop that goes on while something holds."""
        return self.recording.while_loop(self, predicate, step, carry)

    def switch(
        self, index: Tensor, branches: Sequence[Callable[[Leaves], Leaves]], operands: Leaves
    ) -> Leaves:
        """Record branches, of which one is taken."""
        return self.recording.switch(self, index, branches, operands)

    def loop(self, call: LoopCall) -> list[Tensor]:
        """Record a loop whose body was recorded."""
        return cut_loop(self, call)

    @contextmanager
    def body(self, first: FirstTurn) -> Iterator[Inputs]:
        """Record the body of a loop."""
        self._own.append(set())
        try:
            with self.states.body({}):
                inputs = stand_ins(self, first)
                yield Inputs(inputs, inputs)
        finally:
            self._own.pop()

    def spread(
        self,
        given: Sequence[Tensor],
        after: Sequence[Tensor],
        stops: bool,
        shared: int,
        turns: Tensor | None,
    ) -> None:
        """Return None: nothing here differs between examples."""

    def stand_in(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], given: Tensor | None = None
    ) -> Tensor:
        """Return a tensor that stands for an input of a body, for which that is given."""
        array: Any = self._array(Value("input", (), shape, dtype, position=0))
        if self._own:
            self._own[-1].discard(array.storage)
        return wrap(array)

    def first_state(self) -> Traced:
        """Return where a generator is when the function is called: another input."""
        value = Value("input", (), STATE_SHAPE, STATE_DTYPE, position=len(self.inputs))
        self.inputs.append(value)
        return self._array(value)

    def state_of_body(self) -> Any:
        """Return what stands for where a generator is when a body begins."""
        return self.stand_in(STATE_SHAPE, STATE_DTYPE)._array

    def results(self, loop: Any, operands: Sequence[Value]) -> list[Tensor]:
        """Record a loop whose body was cut out, and return its results."""
        values = results_of(loop, operands, loop.metas(), self.origin("loop"))
        arrays: list[Any] = [self._array(value) for value in values]
        for position, array in enumerate(arrays):
            if loop.grows(position):
                self._stacks.enter(array, operands[loop.fixed - 1])
        return [wrap(array) for array in arrays]

    def fused(self, node: Any, gradient: Tensor) -> None:
        """Return None: it is the rules that are traced."""

    def backward_loops(
        self, roots: Sequence[Any], needed: set[Any] | None, captures: dict[Any, Any]
    ) -> BackwardLoops | None:
        """Return the loops among the nodes of a backward pass."""
        loops = BackwardLoops(self, reached(roots) if needed is None else needed, captures)
        return loops if loops.starts else None

    def writable(self, tensor: Tensor) -> NoReturn:
        """Raise for a write to a tensor that was there before the trace."""
        self._fail(
            "a traced function may not write to a tensor that it did not make: the write would "
            "happen once, while tracing, and not in later calls. Return the new value instead, or "
            "clone() the tensor first"
        )

    def check_reshaping(self, name: str, tensor: Tensor) -> None:
        """Raise for a view in place: the shape of a traced tensor stays what it is."""
        array: Any = tensor._array
        if type(array) is not Traced:
            self.writable(tensor)
        self._fail(
            f"{name}_() gives a tensor another shape in place, which is not followed while a "
            f"function is traced: call {name}(), and go on with its result"
        )

    def detached(self, array: Any) -> Any:
        """Return the array as it is: the history is the tensor's."""
        return array

    def set_grad(self, value: bool) -> None:
        """Note where recording is off; it goes by the mode."""
        self.unrecorded = self.unrecorded or not value

    def records_outside(self) -> bool:
        """Return what changes nothing."""
        return True

    def draw(
        self, draw: Any, generator: Any, shape: tuple[int, ...], beside: Sequence[Any]
    ) -> Traced:
        """Record a draw, of where the generator is then."""
        state = self.value_of(self.random_state(generator))
        drawing = Drawing(draw, shape)
        values = results_of(drawing, [state], drawing.metas(), self.origin(draw.kind))
        numbers, after = [self._array(value) for value in values]
        self.set_random_state(generator, after)
        return numbers

    def random_state(self, generator: Any) -> Any:
        """Return where a generator is, in words without numbers."""
        return self.states.of(generator)

    def set_random_state(self, generator: Any, state: Any) -> None:
        """Have a generator go on somewhere else."""
        if type(state) is not Traced:
            state = self.constant(Generator.at(state).words())
        self.states.set(generator, state)

    def refuse_generator(self, what: str) -> NoReturn:
        """Raise for what a generator has no answer to before the compiled function runs."""
        self._fail(
            f"this asks a generator of random numbers for {what}, but while a function is traced "
            "nothing is drawn: ask for it outside. The function may draw from the generator, and "
            "call manual_seed with a number"
        )

    def describe(self, tensor: Tensor) -> str:
        """Return what can be said of a tensor without numbers."""
        array: Any = tensor
        array = array._traced  # `_array` is refused once the function has been left
        text = f"tensor(traced, size={tuple(array.shape)}, dtype={of_numpy(array.dtype)!r})"
        self.described.add(text)
        return text

    def numbers(self, what: str, array: Traced) -> Array:
        """Raise for a request for numbers."""
        self.refuse(what, array)

    def refuse(self, what: str, array: Traced | None = None) -> NoReturn:
        """Raise for a request for numbers."""
        constant = array is not None and not depends_on_arguments(self.value_of(array))
        asked = None if array is None else of_numpy(array.dtype)
        self._fail(words_of_refusal(what, constant, asked))

    def check(self, primitive: Primitive, array: Traced, parameters: dict[str, Any]) -> Traced:
        """Record a primitive whose result has the array's shape and dtype, and which may raise."""
        lower = CHECKS.get(primitive.name)
        if lower is not None:
            value = lower(self.value_of(array), **parameters)
        else:
            whole = Whole(primitive, 1, parameters)
            metas = [(array.shape, array.dtype)]
            operands = [self.value_of(array)]
            (value,) = results_of(whole, operands, metas, self.origin(primitive.name))
        return self._array(value, empty_like(array.place), array.storage.follows)

    def has_nan(self, array: Traced) -> bool:
        """Return False: nothing is computed yet."""
        return False

    def fails(self, error: TraceError) -> None:
        """Note the first reason why the function can't be traced."""
        self._failure = self._failure or error

    def refuse_shape(self, what: str) -> NoReturn:
        """Raise for an operation whose result's shape depends on numbers."""
        self._fail(
            f"the shape of what {what} returns depends on the numbers in a tensor, and while a "
            f"function is traced tensors have none: use {instead_of(what)}"
        )

    # --- how --------------------------------------------------------------------------------------

    def _view(self, primitive: Primitive, arrays: Sequence[Any], parameters: dict[str, Any]) -> Any:
        source = arrays[0]
        result = primitive.forward(place_of(source), **parameters)
        if type(source) is not Traced:
            return result
        if isinstance(result, (tuple, list)):
            return [source.at(place) for place in result]
        return source.at(result)

    def _call(self, primitive: Primitive, arrays: Sequence[Any], parameters: dict[str, Any]) -> Any:
        """Record a primitive as it stands."""
        if primitive.name in _OF_UNKNOWN_SHAPE:
            self.refuse_shape(primitive.name)
        operands = list(arrays)
        template = {name: lift(value, operands) for name, value in parameters.items()}
        values = [self.value_of(operand) for operand in operands]
        in_order = primitive.name in IN_MEMORY_ORDER
        whole = Whole(primitive, len(arrays), template, in_order)
        order = self._order(arrays[0]) if in_order else None
        single, found = whole.results(values, [place_of(operand) for operand in operands])
        metas = [(each.shape, each.dtype) for each in found]
        if order is not None:
            values[0] = order.in_memory(values[0])
            whole.order = order
        items = results_of(whole, values, metas, self.origin(primitive.name))
        _, follows = place_like(primitive, arrays, parameters)
        results = tuple(
            [self._array(*both, follows, primitive.gaps) for both in zip(items, found, strict=True)]
        )
        return results[0] if single else results


def _copied(place: Array, dtype: np.dtype[Any], order: str) -> Array:
    """Return memory for a copy of an array in one of NumPy's orders."""
    if order == "K":
        return empty_like(place, dtype)
    return np.empty_like(place, dtype, order=order)  # type: ignore[call-overload]


def _with_origin(value: Value, origin: str) -> Value:
    if not value.origin and value.operation not in ("input", "array", "constant", "view"):
        value.origin = origin
    return value
