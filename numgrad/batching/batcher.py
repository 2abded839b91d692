"""The batcher: hands every operation of a mapped function to the world outside, for all examples.

While a `Batcher` is open on a thread, it is what traces are to `jit`: every primitive comes to it.
It applies the primitive, or what its batching rule makes of it (`numgrad.batching.rules`), to the
tensors outside. There it may be recorded, differentiated, traced, or come to another batcher. What
is recorded inside knows nothing of it: nodes, their rules and the engine see one example.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from numgrad.batching.branching import run_switch, run_while
from numgrad.batching.compiled import call_compiled
from numgrad.batching.fused import fused_gradients
from numgrad.batching.loops import loop_of_batch, spread_carries
from numgrad.batching.memory import Memory, Part, Stacked
from numgrad.batching.rules import batched_result, has_batched
from numgrad.batching.taken_apart import INSIDE
from numgrad.batching.worlds import Worlds
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import (
    Traced,
    TraceError,
    at_hand,
    instead_of,
    note_copy,
    note_given,
    note_numbers,
)
from numgrad.graph.tensor import NO_EDGE, Tensor, wrap
from numgrad.ops.core.elementwise.node import ElementwiseNode
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.creation.generator import drawn
from numgrad.ops.movement.casts import cast, expand_to
from numgrad.ops.movement.copies import clone, clone_contiguous, detach
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.unit_dims import expand
from numgrad.ops.mutation.inplace import snapshot

__all__ = ["Batcher"]

Array = np.ndarray[Any, Any]

_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)
_CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
    "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
_SELF_IS_ONE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor "
    "`other` in extra_args that has more elements than `self`. This happened due to `other` being "
    "vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place "
    "operators instead of inplace arithmetic. If said operator is being called inside the PyTorch "
    "framework, please file a bug report instead."
)
_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)
_NOT_OWN = (
    "vmap: a branch or the body of a loop that is for some of the examples may not write to what "
    "it did not make: what it hands on is what it returns. clone() it first"
)


class Batcher(Worlds):
    """A recorder (see `numgrad.graph.open_recorder.Recorder`) for one call of a mapped function.

    Parameters
    ----------
    size : int
        The number of examples.
    randomness : str
        "error", "different" or "same".
    """

    transforms = True

    # --- loops and branches: numgrad.graph.open_recorder.LoopRecorder -----------------------------

    @property
    def recording(self) -> Any:
        """What records loops outside; None if nothing is traced there."""
        outer = self._outside.trace
        return None if outer is None else outer.recording

    @property
    def scan(self) -> Any:
        """What records a loop over rows; None where a loop can run as it is."""
        return None if self.has_numbers else functools.partial(self.recording.scan, self)

    def loop(self, call: Any) -> list[Tensor]:
        """Record a loop, as one of all examples."""
        return loop_of_batch(self, call)

    @contextmanager
    def body(self) -> Iterator[None]:
        """Record the body of a loop."""
        with self._own_run(), self._outside.trace.body():
            yield

    def stand_in(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], given: Tensor | None = None
    ) -> Tensor:
        """Return a tensor that stands for an input of a body; it is batched as what is given.

        So is what stands for it outside, which requires grad as that does.
        """
        part = None if given is None else self.part(given)
        batched = part is not None and part.batched
        with self.outside():
            outer: Any = modes.trace
            whole = (self.size, *shape) if batched else shape
            found = outer.stand_in(whole, dtype, None if part is None else part.tensor)
            if part is not None and modes.grad and part.tensor.requires_grad:
                found._edge = None
        return self.inside(found, batched)

    def spread(
        self, given: Sequence[Tensor], after: Sequence[Tensor], stops: bool, shared: int
    ) -> list[Tensor] | None:
        """Return a loop's first carries such that the examples have their own where they come to.

        None if they have already.
        """
        return spread_carries(self, given, after, stops, shared)

    @property
    def has_numbers(self) -> bool:
        """Whether nothing is traced outside, so that Python's own loops can run."""
        outer = self._outside.trace
        return outer is None or (outer.transforms and outer.has_numbers)

    def while_loop(
        self,
        predicate: Callable[[list[Any]], Any],
        step: Callable[[list[Any]], list[Any]],
        carry: list[Any],
    ) -> list[Any]:
        """Go on until all examples are done."""
        if not self.has_numbers:
            found: list[Any] = self.recording.while_loop(self, predicate, step, carry)
            return found
        return run_while(self, predicate, step, carry)

    def switch(
        self,
        index: Tensor,
        branches: Sequence[Callable[[list[Any]], list[Any]]],
        operands: list[Any],
    ) -> list[Any]:
        """Take for each example its own branch."""
        if not self.has_numbers:
            found: list[Any] = self.recording.switch(self, index, branches, operands)
            return found
        return run_switch(self, index, branches, operands)

    def call_compiled(self, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a compiled function for all examples at once."""
        return call_compiled(self, jitted, args, kwargs)

    # --- what numgrad.graph.open_recorder.Recorder asks for ---------------------------------------

    def operands(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the operands with tensors inside in place of those outside."""
        if self.selections:
            return [
                self._selected(self._own(each)) if isinstance(each, Tensor) else each
                for each in operands
            ]
        return [self._own(each) if isinstance(each, Tensor) else each for each in operands]

    def elementwise(
        self,
        primitive: ElementwisePrimitive,
        shape: tuple[int, ...],
        arrays: Sequence[Any],
        dtype: np.dtype[Any],
    ) -> Traced:
        """Apply an elementwise primitive: the examples' dim is one more to broadcast."""
        with self.outside():
            batched = False
            operands: list[Any] = []
            kind = Part
            for each in arrays:
                if type(each) is Traced or type(each) is np.ndarray:
                    part = self.part_of(each)
                    if self._has_stacks and type(part) is Stacked:
                        kind = Stacked
                    batched = batched or part.batched
                    operands.append(part.aligned(len(shape)))
                else:
                    operands.append(each)
            if kind is Stacked:
                return Memory(self, Stacked(primitive.call(operands), True)).array()
            return self._array(primitive.call(operands), batched)

    def fused(self, node: ElementwiseNode, gradient: Tensor) -> list[Traced] | None:
        """Run the fused kernel of a node for all examples at once, where nobody records that."""
        return fused_gradients(self, node, gradient)

    def call(self, primitive: Primitive, arrays: Sequence[Any], parameters: dict[str, Any]) -> Any:
        """Apply any other primitive."""
        if primitive.view:
            return self._view(primitive, arrays[0], parameters)
        if self.selections:  # what is recorded is to be told of these, too
            for name, value in parameters.items():
                parameters[name] = self._selected_in(value)
        parts = [self.part_of(array) for array in arrays]
        known = {name: self._parameter(value) for name, value in parameters.items()}
        apart = INSIDE.get(primitive.name)
        if apart is not None and has_batched((*parts, *known.values())):
            found = apart(*[wrap(array) for array in arrays], **parameters)
            return found._array
        with self.outside():
            result, batched = batched_result(primitive, self.size, parts, known)
            if isinstance(result, (tuple, list)):
                return [self._array(each, batched) for each in result]
            return self._array(result, batched)

    def _selected_in(self, value: Any) -> Any:
        """Return a parameter with what stands for arrays inside in the place of these."""
        if type(value) is Traced:
            array: Any = value
            return self._selected(self._own(wrap(array)))._array
        if type(value) in (tuple, list):
            return type(value)([self._selected_in(each) for each in value])
        return value

    def _parameter(self, value: Any) -> Any:
        """Return a parameter with parts in the place of arrays."""
        if type(value) is Traced or type(value) is np.ndarray:
            return self.part_of(value)
        if type(value) in (tuple, list):
            return type(value)([self._parameter(each) for each in value])
        return value

    def _view(self, primitive: Primitive, source: Any, parameters: dict[str, Any]) -> Any:
        result = primitive.forward(source.place, **parameters)
        if isinstance(result, (tuple, list)):
            return [source.at(place) for place in result]
        return source.at(result)

    def constant(self, array: Any) -> Any:
        """Take an array that was made in the mapped function as one for all examples."""
        if type(array) is Traced and array.storage.recorder is self:
            return array
        with self.outside():
            trace: Any = modes.trace
            made = wrap(array if trace is None else trace.constant(array))
        return self._array(made, False, made=True)

    def cast(self, array: Traced, dtype: np.dtype[Any], order: str) -> Traced:
        """Return a copy, of another dtype."""
        with self.outside():
            tensor, batched = self.part_of(array)
            if dtype != array.dtype:
                copied = cast(tensor, dtype)
            else:
                copied = clone_contiguous(tensor) if order == "C" else clone(tensor)
            return self._array(copied, batched)

    def reshape(self, array: Traced, shape: tuple[int, ...]) -> Traced:
        """Return a copy of another shape."""
        with self.outside():
            tensor, batched = self.part_of(array)
            wanted = (self.size, *shape) if batched else shape
            return self._array(reshape(clone_contiguous(tensor), wanted), batched)

    def laid_out(self, array: Traced, place: Array, *sources: Any) -> Traced:
        """Return a copy that lies as `place` does: what one element shows stays one."""
        with self.outside():
            tensor, batched = self.part_of(array)
            whole = tensor._array.shape
            for dim, (length, step) in enumerate(zip(place.shape, place.strides, strict=True)):
                if step == 0 and length > 1:
                    tensor = tensor.narrow(dim + batched, 0, 1)
            order = sorted(range(place.ndim), key=lambda dim: -place.strides[dim])
            if batched:
                order = [0, *[1 + dim for dim in order]]
            back = sorted(range(len(order)), key=order.__getitem__)
            once = clone_contiguous(tensor.permute(order)).permute(back)
            return self._array(expand_to(once, whole), batched)

    def write(self, target: Traced, value: Any) -> None:
        """Write outside, to every example."""
        storage: Any = target.storage
        if self.selections and self.selections[-1].is_older(storage):
            raise RuntimeError(_NOT_OWN)
        with self.outside():
            part = self.part_of(value) if isinstance(value, (Traced, np.ndarray)) else None
            if part is not None and part.batched and not storage.value.batched:
                if not storage.made:
                    raise RuntimeError(_SELF_IS_ONE)
                one = storage.value.tensor
                every = expand(one, (self.size, *one._array.shape))
                storage.replace(Part(clone_contiguous(every), True))
            found, batched = storage.part(target.place)
            if part is None:
                found.fill_(value)
            else:
                node, _ = part.tensor._edge or NO_EDGE
                if node is not None:  # what it saved of what is now written over
                    snapshot([node], storage.value.tensor)
                found.copy_(part.aligned(found._array.ndim - batched))

    def each_row(
        self,
        function: Callable[[Tensor], Sequence[Tensor | None]],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        """Return None: there is no loop to record."""

    def writable(self, tensor: Tensor) -> Any:
        """Return an array inside whose writes go to a tensor from outside."""
        return self._own(tensor)._array

    def check_reshaping(self, name: str, tensor: Tensor) -> None:
        """Raise where a tensor outside would get the shape of one inside."""
        array: Any = tensor._array
        if type(array) is not Traced or name == "resize":
            raise RuntimeError(
                f"vmap: {name}_() can't give a tensor from outside of the mapped function, or "
                "more memory than there is, another shape: use the function without underscore"
            )

    def detached(self, array: Any) -> Any:
        """Return an array over the same memory, of which outside nothing depends on anything."""
        if type(array) is not Traced or array.storage.recorder is not self:
            return array
        with self.outside():
            tensor, batched = self.part_of(array)
            return self._array(detach(tensor), batched)

    def set_grad(self, value: bool) -> None:
        """Have the world outside record or not, too."""
        self._outside.grad = (value or self._has_tangents) and self._may_record
        self.unrecorded = self.unrecorded or not value
        if self._outside.trace is not None:
            self._outside.trace.set_grad(value)

    def records_outside(self) -> bool:
        """Return whether the world outside records."""
        return self._outside.grad

    def depend_on_strides(self, arguments: frozenset[int]) -> None:
        """Do nothing: no strides here follow from arguments."""

    def check(self, primitive: Primitive, array: Traced, parameters: dict[str, Any]) -> Traced:
        """Run a check of numbers."""
        with self.outside():
            tensor, batched = self.part_of(array)
            found: Any = tensor._array
            if type(found) is Traced:
                found = modes.trace.check(primitive, found, parameters)
            else:
                found = primitive.forward(found, **parameters)
            return self._array(wrap(found), batched)

    def known(self, array: Traced) -> Array | None:
        """Return the numbers of an array that is one for all examples, if there are any."""
        with self.outside():
            tensor, batched = self.part_of(array)
            found: Any = tensor._array
            if batched:
                return None
            return modes.trace.known(found) if type(found) is Traced else found

    def has_nan(self, array: Traced) -> bool:
        """Return whether there is a nan in any example's."""
        with self.outside():
            found: Any = self.part_of(array).tensor._array
            if type(found) is Traced:
                return bool(modes.trace.has_nan(found))
            return bool(np.isnan(found).any())

    def captured(self, array: Array) -> Any:
        """Return the array as the world outside has it."""
        with self.outside():
            found = at_hand(array)
        return found if found is array else self._array(wrap(found), False)

    def bake(self, array: Array) -> None:
        """Tell the world outside."""
        with self.outside():
            note_numbers(array)

    def copies(self, array: Array) -> None:
        """Tell the world outside."""
        with self.outside():
            note_copy(array)

    def takes(self, value: Any) -> None:
        """Tell the world outside."""
        with self.outside():
            note_given(value)

    def draw(
        self, draw: Any, generator: Any, shape: tuple[int, ...], beside: Sequence[Any]
    ) -> Traced:
        """Draw numbers outside: for each example, or once for all."""
        if self.randomness == "error":
            raise RuntimeError(_RANDOM)
        differ = self.randomness == "different"
        with self.outside():
            parts = [self.part_of(each) for each in beside]
            if not differ and any(part.batched for part in parts):
                raise RuntimeError(
                    "Vmap does not currently support same randomness with a batched tensor input. "
                    "Please file an issue with functorch"
                )
            whole = (self.size, *shape) if differ else shape
            return self._array(wrap(drawn(draw, generator, whole)), differ)

    def random_state(self, generator: Any) -> Any:
        """Return where a generator is in the world outside: it is one for all examples."""
        with self.outside():
            return generator.snapshot()

    def set_random_state(self, generator: Any, state: Any) -> None:
        """Tell the world outside."""
        part = self.part_of(state)
        with self.outside():
            generator.restore(part.tensor._array)

    def numbers(self, what: str, array: Traced) -> Array:
        """Return the numbers of what is one for all examples; raise for a batch."""
        with self.outside():
            part = self.part_of(array)
        if part.batched:
            self.refuse(what, array)
        with self.outside():
            found: Any = part.tensor._array
            known = modes.trace.known(found) if type(found) is Traced else found
            return np.asarray(found if known is None else known)

    def backward_loops(
        self, roots: Sequence[Any], needed: set[Any] | None, captures: dict[Any, Any]
    ) -> None:
        """Return None: what is recorded of a batch runs node by node."""

    def fails(self, error: TraceError) -> None:
        """Tell the world outside: one in which a function is traced can't be."""
        if self._outside.trace is not None:
            self._outside.trace.fails(error)

    def refuse_shape(self, what: str) -> NoReturn:
        """Raise for an operation whose result's shape depends on numbers."""
        if "mask" in what:
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. "
                "Attempting to batch over indexing with a boolean mask."
            )
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted "
            f"to vmap over aten::{what}: use {instead_of(what)}"
        )

    def refuse(self, what: str, array: Traced | None = None) -> NoReturn:
        """Raise for a request for the numbers of a batch."""
        if what == "a truth value":
            raise RuntimeError(_CONTROL_FLOW)
        if what == "a Python number":
            raise RuntimeError(_ITEM)
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def describe(self, tensor: Tensor) -> str:
        """Return how a tensor is printed: with what it is outside, also when it has left."""
        traced: Any = tensor
        part = self.part_of(traced._traced)
        with self.outside():
            text = repr(part.tensor)
        if not part.batched:
            return text
        level, outer = 1, self._outside.trace
        while isinstance(outer, Batcher):
            level, outer = level + 1, outer._outside.trace
        indented = text.replace("\n", "\n    ")
        return f"BatchedTensor(lvl={level}, bdim=0, value=\n    {indented}\n)"
