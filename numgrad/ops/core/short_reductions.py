"""Reductions and scans of one small tensor: forward, node and backward, prepared once.

Which dims a call means, what it raises, which kernel does it and which shape the result has all
follow from the shape and the dtype of the tensor and the arguments as they were written. So the
first such call goes the long way, through all checks, and is remembered with what it came to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base.halves import HALF
from numgrad.base.tuning import FEW_ELEMENTS, REMEMBERED_CALLS
from numgrad.graph.accumulate import gradient_edge
from numgrad.graph.modes import call_interceptors, interceptors, modes
from numgrad.graph.node import next_sequence
from numgrad.graph.tensor import NO_EDGE, Tensor, new_counter, refresh_view
from numgrad.kernels.reduce.short_reductions import ShortCall
from numgrad.ops.core.primitive import Primitive, PrimitiveNode

__all__ = ["ShortCalls", "ShortNode"]

_new = object.__new__


class ShortCalls:
    """The calls of a primitive of one input that are remembered.

    Parameters
    ----------
    primitive : Primitive
    prepare : callable
        ``prepare(shape, own, **parameters)``, of the input's shape and its own dtype, returns what
        computes the result, or the tuple of
        results, of a C-contiguous array of few elements; or None, where there is no such thing.
    """

    __slots__ = ("calls", "is_differentiable", "prepare", "primitive")

    def __init__(self, primitive: Primitive, prepare: Callable[..., ShortCall | None]) -> None:
        self.primitive = primitive
        self.prepare = prepare
        self.calls: dict[Any, tuple[ShortCall, dict[str, Any], Any]] = {}
        self.is_differentiable = primitive.rules[0] is not None

    def find(self, input: Any, dim: Any, keepdim: Any = False) -> Any:
        """Return what the public function returns for these arguments; None if it has to look.

        The function then looks, and calls `apply`.
        """
        if (
            type(input) is not Tensor
            or (type(dim) is not int and dim is not None)
            or type(keepdim) is not bool
            or call_interceptors
        ):
            return None
        array = input._array
        found = self.calls.get((array.shape, array.dtype, dim, keepdim))
        if found is None or not array.flags.c_contiguous:
            return None
        if input._base is not None:
            refresh_view(input)
        run, parameters, several = found
        value = run(array)
        if several:
            return self._several(input, value, parameters)
        output = _new(Tensor)
        output._array = value
        output._counter = new_counter() if interceptors else [0]
        if input._edge is not NO_EDGE and modes.grad and self.is_differentiable:
            self._record(input, (output,), parameters)
        return output

    def apply(self, input: Tensor, dim: Any, keepdim: Any = False, /, **parameters: Any) -> Any:
        """Run the primitive, and remember a call that did not fail; see `remember`."""
        result = self.primitive.apply(input, **parameters)
        self.remember(input, dim, keepdim, parameters)
        return result

    def remember(self, input: Tensor, dim: Any, keepdim: Any, parameters: dict[str, Any]) -> None:
        """Remember a call whose arguments were checked, if there is a fast path.

        Parameters
        ----------
        input : Tensor
        dim, keepdim
            As they were written.
        parameters : dict
            What the primitive gets.
        """
        array = input._array
        if (
            array.size <= FEW_ELEMENTS
            and type(array) is np.ndarray
            and array.dtype != HALF
            and (type(dim) is int or dim is None)
            and type(keepdim) is bool
        ):
            run = self.prepare(array.shape, array.dtype, **parameters)
            if run is not None:
                if len(self.calls) >= REMEMBERED_CALLS:
                    self.calls.clear()
                several = len(self.primitive.outputs) > 1
                self.calls[array.shape, array.dtype, dim, keepdim] = run, parameters, several

    def _several(
        self, input: Tensor, values: tuple[Any, ...], parameters: dict[str, Any]
    ) -> tuple[Tensor, ...]:
        """Return several results as tensors."""
        outputs = []
        for value in values:
            output = _new(Tensor)
            output._array = value
            output._counter = new_counter() if interceptors else [0]
            outputs.append(output)
        if input._edge is not NO_EDGE and modes.grad:
            self._record(input, outputs, parameters)
        return tuple(outputs)

    def _record(self, input: Tensor, outputs: Any, parameters: dict[str, Any]) -> None:
        """Attach a node, as the primitive does where nobody observes."""
        primitive, array, edge = self.primitive, input._array, input._edge
        node = _new(primitive.node_class)
        target, number = gradient_edge(input) if edge is None else edge
        node.targets, node.numbers = (target,), (number,)
        node.sequence = next_sequence()
        node.attached = None
        node.needs = 1
        node.parameters = parameters
        node.shapes = ((array.shape, array.dtype),)
        node.output_metas = tuple([(out._array.shape, out._array.dtype) for out in outputs])
        saved: tuple[Any, ...] = ()
        for kind, position in primitive.saved_for(1, 1):
            tensor = input if kind == "input" else outputs[position]
            counter = tensor._counter
            saved += (tensor._array, counter, counter[0])
        node.saved = saved
        # Several outputs are values and positions: only the first is differentiable.
        outputs[0]._edge = (node, 0)


class ShortNode(PrimitiveNode):
    """A node of one input, one output and one saved array, whose rule has a fast path on arrays.

    Subclasses say which, in `short_gradient`. It gives the same bits as the rule.
    """

    __slots__ = ()

    def run_arrays(self, gradients: Sequence[Any]) -> tuple[Sequence[Any], Sequence[bool | None]]:
        """Take the fast path where there are few elements, all of one dtype, and nobody looks."""
        gradient, saved = gradients[0], self.saved
        if gradient is not None and saved and not call_interceptors:
            array, counter, version = saved
            shape, dtype = self.shapes[0]
            if (
                gradient.dtype == dtype
                and dtype != HALF
                and type(array) is np.ndarray
                and array.dtype == dtype
                and counter[0] == version
                and 0 < array.size <= FEW_ELEMENTS
            ):
                result = self.short_gradient(gradient, array, shape)
                if result is not None:
                    return (result,), (True,)
        return super().run_arrays(gradients)

    def short_gradient(self, gradient: Any, saved: Any, shape: tuple[int, ...]) -> Any:
        """Return the gradient of the input as a new array; None if the rule has to do it."""
        raise NotImplementedError
