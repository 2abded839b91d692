"""Primitives: an operation declared once, beside the rule of its derivative.

A `Primitive` is an operation on arrays that the graph records as one node. From its declaration
follow the node class with PyTorch's name, what has to be saved (read off the parameters of the
rules), and its entry in the `CATALOGUE`, from which methods, tests, docs and benchmarks come.
`numgrad.ops.core.elementwise.primitive` has those whose forward is a formula.

A rule is a plain function of tensors, one for each differentiable input. Its parameters say what
it needs, by name: ``g``, the cotangent; the names of outputs (``y`` unless declared otherwise);
the names of inputs; the names of static parameters; ``<input>_shape``; and ``<input>_lies``, how
an input lay in memory (see `numgrad.ops.core.places`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from pickle import PicklingError
from typing import Any, ClassVar

from numgrad.base.halves import (
    HALF,
    HALVES,
    WIDE,
    as_halves,
    narrowed,
    wide_dtype,
    widened,
)
from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.graph.modes.anomaly import note_node
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.node import SavedArray
from numgrad.graph.tensor import NO_EDGE, Tensor, refresh_view, view_of, wrap
from numgrad.graph.upward import upward
from numgrad.ops.calls.node_source import attach_for
from numgrad.ops.core.catalogue import CATALOGUE, check_names, enter
from numgrad.ops.core.nodes import Call, PrimitiveNode, derived_positions, make_node_class
from numgrad.ops.core.plan import DeclaredRule, Plan, Rule, declared_rule

__all__ = ["CATALOGUE", "Primitive", "require_tensor", "save_tensor"]

FEW_INPUTS = 4  # of just so many lines make a node, of more those for any number


def save_tensor(tensor: Tensor) -> SavedArray:
    """Return what a node keeps of a tensor: never the tensor itself, which could close a cycle."""
    counter = tensor._counter
    return (tensor._array, counter, counter[0])


def require_tensor(value: Any, function: str, argument: str, position: int) -> Tensor:
    """Return `value` if it is a tensor, else raise PyTorch's TypeError."""
    if isinstance(value, Tensor):
        return value
    raise TypeError(
        f"{function}(): argument '{argument}' (position {position}) must be Tensor, not "
        f"{type(value).__name__}"
    )


def _is_of_halves(arrays: Sequence[Any], parameters: dict[str, Any]) -> bool:
    return arrays[0].dtype in HALVES or parameters.get("dtype") is HALF


class Primitive:
    """An operation on arrays and the rules of its derivative.

    Parameters
    ----------
    name : str
        Its name in the catalogue.
    node : str
        PyTorch's name of the node.
    forward : callable
        ``forward(*arrays, **parameters)`` returns an array, or a tuple of arrays.
    inputs : sequence of str
        The names of the tensor inputs. A single name with a star (``"*tensors"``) takes any number.
    vjp : dict or sequence of rules
        For each input its rule, or None where no gradient flows. With any number of inputs, one
        rule for all, which may name ``position``, ``inputs`` and ``shapes``.
    outputs : sequence of str
        The names of the outputs.
    constant : sequence of str
        The names of those that no gradient flows through, though they hold floats.
    view : bool
        Whether the output shares the memory of the first input.
    linear : bool
        Whether the operation is linear in its inputs together, so that it is its own tangent map.
    lies : callable, optional
        How the result lies in memory, if not row by row: a function that returns memory for it, or
        None where it lies row by row however its inputs lie. What it names (inputs, or ``inputs``
        for all of them, and parameters) is what decides. The forward puts its result in such
        memory, and a trace takes it for how the result will lie.
    gaps : bool
        Whether memory between the elements of inputs may be between those of the result.
    takes_half : bool
        Whether the forward takes float16 as it is, as those of views do. Others get float32, and
        their results are rounded.
    of_halves : callable, optional
        The forward for float16, of one that rounds on the way.
    rounds_first : bool
        Whether with ``dtype=float16`` numbers are rounded to it before the forward.
    quick : callable, optional
        ``quick(*arrays, **parameters)`` returns a function of arrays that lie as these do, which
        does what the forward does with less around it; or None.
    few : callable, optional
        The same, for few elements of one dtype, in C order; it is asked first.
    writes : callable, optional
        ``writes(array, *arrays, **parameters)`` does in the memory of the first operand what the
        forward does in new memory, for operands that may overlap.
    named : callable, optional
        For a forward that leaves some elements of its first operand as they are, what else it
        writes: ``named(own, *arrays, **parameters)`` takes the numbers of these elements, in the
        operand's shape, and returns what `write_named` takes behind the array.
    counts : bool
        Whether the shape of the result may follow from numbers: it is that of an index in the
        parameters, whose length may do so.
    by_numbers : bool
        Whether a rule looks at numbers in tensors, so that what it does differs between calls.
    stand_in : callable, optional
        ``stand_in(place)`` returns numbers for an operand of which no more is known than how it
        lies, if the forward fails for zeros: a trace runs it on these to see how results look.
    native : numgrad.kernels.matrices.unrolled.Unrolled, optional
        What compiled code does in the place of the forward, for operands that it is for, with the
        same bits.
    listed : bool
        Whether it is an operation of the catalogue, and not a part of one.
    samples : sequence of callables
        Calls that the tests check the derivatives of: ``sample(make)`` returns a function, its
        tensors, and its keyword arguments; ``make(*shape, low=-3, high=3, distinct=False)`` gives
        a float64 tensor that requires grad.
    """

    node_type: ClassVar[type[PrimitiveNode]] = PrimitiveNode
    plan_type: ClassVar[type[Plan]] = Plan
    # What most primitives are; elementwise ones are nothing else.
    outputs: tuple[str, ...] = ("y",)
    constant: tuple[int, ...] = ()
    view = linear = gaps = counts = by_numbers = False
    multiple_views = variadic = variable_outputs = False
    writes: Callable[..., None] | None = None
    named: Callable[..., tuple[Any, ...]] | None = None
    takes_half = True
    samples: tuple[Callable[..., Any], ...] = ()
    lies: DeclaredRule | None = None
    native: Any = None
    of_halves: Callable[..., Any] | None = None
    rounds_first = True

    def __reduce__(self) -> Any:
        """Pickle an operation by its name."""
        if CATALOGUE.get(self.name) is not self:
            raise PicklingError(f"{self.name} is a part of an operation, and can't be pickled")
        return upward.listed, (self.name,)

    def __init__(
        self,
        name: str,
        node: str,
        forward: Callable[..., Any],
        inputs: Sequence[str],
        vjp: Sequence[Rule | None],
        *,
        outputs: Sequence[str] = ("y",),
        constant: Sequence[str] = (),
        view: bool = False,
        linear: bool = False,
        multiple_views: bool = False,
        variable_outputs: bool = False,
        lies: Callable[..., Any] | None = None,
        gaps: bool = False,
        takes_half: bool = False,
        of_halves: Callable[..., Any] | None = None,
        rounds_first: bool = True,
        samples: Sequence[Callable[..., Any]] = (),
        quick: Callable[..., Any] | None = None,
        few: Callable[..., Any] | None = None,
        writes: Callable[..., None] | None = None,
        named: Callable[..., tuple[Any, ...]] | None = None,
        counts: bool = False,
        by_numbers: bool = False,
        stand_in: Callable[[Any], Any] | None = None,
        native: Any = None,
        listed: bool = True,
    ) -> None:
        self.outputs = tuple(outputs)
        self.constant = tuple([self.outputs.index(name) for name in constant])
        self.view = view
        self.variadic = inputs[0].startswith("*")
        self.declare(name, node, inputs, vjp, self._static_names(forward, len(inputs)))
        self.forward = forward
        self.quick, self.few = quick, few
        self.writes = writes
        self.named = named
        self.counts = counts
        self.by_numbers = by_numbers
        self.stand_in, self.native = stand_in, native
        self.samples = tuple(samples)
        self.linear = linear
        self.takes_half = takes_half or view
        self.of_halves, self.rounds_first = of_halves, rounds_first
        self.lies = None if lies is None else declared_rule(lies)
        self.gaps = gaps
        self.multiple_views = multiple_views
        self.variable_outputs = variable_outputs
        self._node_classes: dict[int, Any] = {len(self.outputs): self.node_class}
        if listed:
            enter(self)

    def declare(
        self,
        name: str,
        node: str,
        inputs: Sequence[str],
        vjp: Sequence[Rule | None],
        parameters: Sequence[str] = (),
    ) -> None:
        """Take what all primitives are declared with; `parameters` are those that are no inputs."""
        named = [inputs[0][1:]] if self.variadic else inputs
        check_names(name, named, self.outputs, parameters)
        self.name = name
        self.inputs = tuple(inputs)
        self.rules = tuple([None if rule is None else declared_rule(rule) for rule in vjp])
        self.plans: dict[tuple[int, str], Any] = {}
        needed = {name for rule in self.rules if rule is not None for name in rule.parameters}
        may_save = needed.intersection((*self.inputs, *self.outputs))
        self.node_class: Any = self._make_node_class(node, len(self.outputs), may_save)

    def _make_node_class(self, name: str, outputs: int, may_save: Iterable[str] = ()) -> Any:
        """Return the class of nodes of so many outputs."""
        return make_node_class(
            name,
            self.node_type,
            may_save,
            primitive=self,
            num_outputs=outputs,
            gives_views=self.view,
            _derived=derived_positions(self.rules),
        )

    def _static_names(self, forward: Callable[..., Any], inputs: int) -> list[str]:
        """Return the names of the parameters that are no inputs, as far as they can be known."""
        try:
            named = list(inspect.signature(forward).parameters.values())
        except ValueError:  # of a function of NumPy's, say
            return []
        behind = [] if self.variadic else named[inputs:]
        behind += [each for each in named if each.kind is each.KEYWORD_ONLY and each not in behind]
        return [
            each.name for each in behind if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]

    def rules_for(self, count: int) -> Sequence[DeclaredRule | None]:
        """Return the rule of each of `count` inputs."""
        return self.rules * count if self.variadic else self.rules

    def input_names(self, count: int) -> Sequence[str]:
        """Return the name of each of `count` inputs."""
        if self.variadic:
            return [f"{self.inputs[0][1:]}{position}" for position in range(count)]
        return self.inputs

    def plan(self, needs: int, kinds: str) -> Any:
        """Return what the backward pass takes for some inputs and kinds of operands; see `Plan`."""
        plan = self.plans.get((needs, kinds))
        if plan is None:
            plan = self.plans[needs, kinds] = self.plan_type(self, needs, kinds)
        return plan

    def apply(self, *inputs: Any, held: Sequence[Tensor] = (), **parameters: Any) -> Any:
        """Run the operation on tensors and record a node if one is needed.

        `held` are the tensors that an index or a mask among the parameters was read from: writing
        to them is an error, as writing to what the node saves of its inputs.
        """
        arrays: list[Any] = []
        needs = False
        trace = modes.trace
        if trace is not None:
            inputs = trace.operands(inputs)
        for tensor in inputs:
            if tensor._base is not None:
                refresh_view(tensor)
            if tensor._edge is not NO_EDGE:
                needs = True
            arrays.append(tensor._array)
        if trace is None:
            # Where operands may differ in dtype, the primitive takes float16 as it is.
            if self.takes_half or (
                arrays[0].dtype not in HALVES
                and not (parameters and parameters.get("dtype") is HALF)
            ):
                result = self.forward(*arrays, **parameters)
            else:
                result = self._forward_of_halves(*arrays, **parameters)
        else:
            result = trace.call(self, arrays, parameters)
        if isinstance(result, (tuple, list)):
            return self._wrap_all(inputs, result, parameters)
        output = view_of(inputs[0], result) if self.view else wrap(result)
        needs = needs and modes.grad
        if needs or interceptors:
            self._settle(inputs, (output,), parameters, needs, held=held)
        return output

    def _settle(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        parameters: dict[str, Any],
        records: bool,
        several: bool = False,
        held: Sequence[Tensor] = (),
    ) -> None:
        """Record a call that was made, where that is wanted, and tell who notes such steps."""
        if interceptors and modes.dual is not None:
            self._hand_on_tangents(inputs, outputs, parameters, held)
        elif records:
            self.record(inputs, outputs, parameters, held=held)
        if interceptors and modes.steps is not None:
            arrays = [each._array if isinstance(each, Tensor) else each for each in inputs]
            run = self.function_for(arrays, parameters)
            modes.steps.note(self, inputs, parameters, outputs, run, several, held)

    def function_for(self, arrays: Sequence[Any], parameters: dict[str, Any]) -> Callable[..., Any]:
        """Return the forward for parameters, and for arrays that lie as these do.

        It takes those parameters by name that hold arrays whose numbers may be others.
        """
        numbers = modes.steps.numbers_in(parameters)
        fixed = {name: parameters[name] for name in parameters if name not in numbers}
        found = self.prepared(arrays, parameters, bool(numbers))
        if found is not None:
            return found
        forward = self.forward
        if not self.takes_half and _is_of_halves(arrays, parameters):
            forward = self._forward_of_halves
        return functools.partial(forward, **fixed) if fixed else forward

    def prepared(
        self, arrays: Sequence[Any], parameters: dict[str, Any], varies: bool = False
    ) -> Callable[..., Any] | None:
        """Return what does for arrays that lie as these do what the forward does, if there is such.

        `varies` tells that there are parameters with numbers that may be others in each call.
        """
        dtype = arrays[0].dtype
        found: Callable[..., Any] | None = None
        few = self.few is not None and dtype != HALF and not varies
        if few and all(
            array.dtype == dtype and array.flags.c_contiguous and 0 < array.size <= FEW_ELEMENTS
            for array in arrays
        ):
            found = self.few(*arrays, **parameters)  # type: ignore[misc]
        takes = self.takes_half or not _is_of_halves(arrays, parameters)
        if found is None and self.quick is not None and takes:
            found = self.quick(*arrays, **parameters)
        return found

    def _forward_of_halves(self, *arrays: Any, **parameters: Any) -> Any:
        """Run the forward in float32; what it gives is rounded if no operand is wider."""
        wanted = parameters.get("dtype")
        if wanted is None:
            rounds = all(array.dtype == HALF for array in arrays if array.dtype.kind in "fc")
        else:
            rounds = wanted == HALF
            parameters["dtype"] = wide_dtype(wanted)
            if rounds and self.rounds_first:
                arrays = tuple([as_halves(array) for array in arrays])
        if rounds and self.of_halves is not None:
            return self.of_halves(*arrays, **parameters)
        known = {name: widened(value) for name, value in parameters.items()}
        result = self.forward(*[widened(array) for array in arrays], **known)
        if isinstance(result, (tuple, list)):
            return type(result)([self._rounded(array, rounds) for array in result])
        return self._rounded(result, rounds)

    @staticmethod
    def _rounded(array: Any, rounds: bool) -> Any:
        return narrowed(array) if rounds and array.dtype == WIDE else array

    def _wrap_all(
        self, inputs: Sequence[Tensor], arrays: Sequence[Any], parameters: dict[str, Any]
    ) -> tuple[Tensor, ...]:
        """Return several results as tensors, with a node if one is needed."""
        outputs: list[Tensor]
        if self.view:
            outputs = [view_of(inputs[0], array) for array in arrays]
            if self.multiple_views and modes.grad and inputs[0]._view_origin != "inference":
                for output in outputs:
                    output._view_origin = "multiple"
        else:
            outputs = [wrap(array) for array in arrays]
        self._settle(inputs, outputs, parameters, modes.grad, several=True)
        return tuple(outputs)

    def _hand_on_tangents(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        parameters: dict[str, Any],
        held: Sequence[Tensor],
    ) -> None:
        """Let the open level of forward mode record and differentiate a call."""
        modes.dual.record(
            lambda inputs, outputs, moving: self.record(inputs, outputs, parameters, moving, held),
            inputs,
            outputs,
            (lambda tangent: self.apply(tangent, **parameters)) if self.view else None,
        )

    def record(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        parameters: dict[str, Any],
        moving: int = 0,
        held: Sequence[Tensor] = (),
    ) -> None:
        """Attach a node to the outputs if an input requires grad and a gradient could flow.

        The inputs whose bits are set in `moving` have a tangent, and need the node, too. See
        `apply` for `held`.
        """
        needs = moving
        for position, operand in enumerate(inputs):
            if isinstance(operand, Tensor) and operand._edge is not NO_EDGE:
                needs |= 1 << position
        reached = [
            number
            for number, out in enumerate(outputs)
            if out._array.dtype.kind in "fc" and number not in self.constant
        ]
        if not needs or not reached:
            return
        cls = self.node_class
        if self.variable_outputs:
            cls = self._node_classes.get(len(outputs))
            if cls is None:
                cls = self._make_node_class(self.node_class.__name__, len(outputs))
                self._node_classes[len(outputs)] = cls
        call, kinds, kept = self._call_of(needs, inputs, outputs, parameters, held)
        attach = attach_for(call.saved_places, kinds, tuple(reached))
        node = attach(cls, call, kept, outputs, held)
        if interceptors:
            note_node(node)

    def _call_of(
        self,
        needs: int,
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        parameters: dict[str, Any],
        held: Sequence[Tensor],
    ) -> tuple[Any, str, Sequence[Any]]:
        """Return what nodes of such calls share, the kinds of the inputs, and what is kept."""
        plan = self.plan(needs, "t" * len(inputs))
        kinds = "t" * len(inputs) if len(inputs) <= FEW_INPUTS else ""
        return Call(plan, parameters, inputs, outputs, len(held)), kinds, inputs
