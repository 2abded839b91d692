"""Elementwise primitives: one declaration, from which kernels, nodes and functions follow.

A primitive is a formula (or the scalar function of the same name), the rule of each input, and the
domain that tests draw from. `numgrad.ops.core.declare` has the functions that declare one, and
`numgrad.ops.pointwise.exponential` shows what that looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.halves import HALVES
from numgrad.codegen.expression import Symbol, literal
from numgrad.graph.kinds import kind_for
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.recorder import Traced, note_given, place_of
from numgrad.graph.tensor import NO_EDGE, Tensor, kind_of, refresh_view, wrap
from numgrad.kernels.move.loop_order import NUMBER, ResultOrder, result_order
from numgrad.kernels.move.memory_order import as_dtype
from numgrad.kernels.pointwise.flat_calls import converter
from numgrad.math.functions import FORMULAS, Formula
from numgrad.ops.calls.dispatch import Calls
from numgrad.ops.calls.keys import NAMES, tensor_lines
from numgrad.ops.calls.node_source import define_lines
from numgrad.ops.core.catalogue import check_name, enter
from numgrad.ops.core.domains import Domain
from numgrad.ops.core.elementwise.gradient_plan import GradientPlan
from numgrad.ops.core.elementwise.half_kernels import ElementwiseKernel, rounded
from numgrad.ops.core.elementwise.node import ElementwiseNode
from numgrad.ops.core.elementwise.traced_calls import run_traced, traced_result
from numgrad.ops.core.nodes import Call
from numgrad.ops.core.out_argument import write_elementwise
from numgrad.ops.core.plan import DeclaredRule, Rule, declared_rule
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.promotion import broadcast_shapes, in_64_bits, result_dtype

__all__ = ["ElementwisePrimitive"]

Array = np.ndarray[Any, Any]
Number = (bool, int, float, complex, np.number, np.bool_)
_EXACT = (Tensor, bool, int, float, complex)

_BOOL = np.dtype(bool)
_ARRAYS = (np.ndarray, Traced)

# What `kind` may be: how dtypes of operands decide the dtype of the computation and the result.
#   same    compute and return the promoted dtype
#   float   as same, but integers and bools become the default floating point dtype
#   bool    compute in the promoted dtype, return bool
#   real    as same, but a complex operand gives its real dtype
_KINDS = ("same", "float", "bool", "real")


class ElementwisePrimitive(Primitive):
    """A primitive whose forward is a formula, and whose gradients are one fused kernel.

    Calling it runs it on tensors, Python numbers, or the symbols of a formula.

    Parameters
    ----------
    name : str
        Its name in the catalogue, and of its scalar function.
    inputs : sequence of str
        The names of its operands.
    vjp : sequence of rules
        For each operand its rule, or None where no gradient flows.
    domains : sequence of Domain
        For each operand, where it is defined and smooth; tests draw from it.
    doc : str
        The docstring of its function.
    formula : callable, optional
        What it computes of symbols; by default the scalar function of its name.
    kind : {"same", "float", "bool", "real"}
        How the dtype of the result follows from those of the operands.
    accepts : str
        The kinds of dtypes that it computes with, in NumPy's letters.
    node : str, optional
        PyTorch's name of the node.
    masks, numbers : sequence of str
        The operands that are bool, and those that are never tensors.
    wide : sequence of str, optional
        The operands that, as numbers beside float16, are not rounded to it; by default `numbers`.
    function_name : str, optional
        The name of its function, if that is another one.
    deciding : callable, optional
        Which of its arrays decide on the layout of the result, if not all in their order, or how it
        lies; `NUMBER` of `numgrad.kernels.move.loop_order` is a number that is an operand.
    deciding_out : callable, optional
        The same for an `out` that takes the shape of the result; unless given, that lies as one.
    kernel_name : str, optional
        What PyTorch calls its kernel; it stands in the error for a dtype that has none.
    refuses : mapping, optional
        For dtype kinds that PyTorch refuses in other words, the error to raise.
    out_differs : str, optional
        Of an operation that does not cast to the dtype of `out`, what is said then: words with
        ``{out}`` and ``{result}``.
    check : callable, optional
        What is called with the operands of a new kind, and raises for those that it does not take.
    example : str, optional
        A line of code and, below it, what it prints; it ends the docstring.
    closer : rule, optional
        Of an operation of one operand, a rule that names the input beside the output, and is the
        more accurate for it; see `numgrad.ops.core.elementwise.spare`.
    gradients_lie : mapping, optional
        For operands whose gradient PyTorch computes in another order than the rule, a function of
        what that names which has that order, and a number where gradients lie row by row: how they
        lie in memory follows from it.
    listed : bool
        Whether it is an operation of the catalogue, and not a part of one.
    """

    node_type = ElementwiseNode
    plan_type = GradientPlan

    def __init__(
        self,
        name: str,
        inputs: Sequence[str],
        vjp: Sequence[Rule | None],
        domains: Sequence[Domain],
        *,
        doc: str,
        formula: Callable[..., Any] | None = None,
        kind: str = "same",
        accepts: str = "fciu",
        node: str | None = None,
        masks: Sequence[str] = (),
        numbers: Sequence[str] = (),
        wide: Sequence[str] | None = None,
        function_name: str | None = None,
        deciding: Callable[[list[Array]], list[Array] | ResultOrder] | None = None,
        deciding_out: Callable[[list[Array]], list[Array]] | None = None,
        kernel_name: str | None = None,
        refuses: Mapping[str, Exception] | None = None,
        out_differs: str = "",
        check: Callable[..., None] | None = None,
        example: str | None = None,
        closer: Rule | None = None,
        gradients_lie: Mapping[str, Rule] | None = None,
        listed: bool = True,
    ) -> None:
        check_name(name)
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {_KINDS}, not {kind!r}")
        if not accepts or set(accepts) - set("bfciu"):
            raise ValueError(f"{name}: accepts is some of NumPy's kinds, bfciu, not {accepts!r}")
        if len(domains) != len(inputs):
            raise ValueError(f"{name}: every operand needs a domain to draw test points from")
        if len(vjp) != len(inputs):
            raise ValueError(f"{name}: every operand needs a rule, or None")
        self.function_name = function_name or name
        self.formula = formula
        self.kernel = ElementwiseKernel(name, inputs, self._formula)
        self.declare(name, node or f"{name.title().replace('_', '')}Backward0", inputs, vjp)
        for declared in self.rules:
            unknown = {*declared.parameters} - {"g", "y", *inputs} if declared else set()
            if unknown:
                raise ValueError(f"{name}: a rule names {sorted(unknown)}, which are not operands")
        self.closer = None if closer is None else declared_rule(closer)
        self.gradients_lie = {
            self.inputs.index(name): declared_rule(rule)
            for name, rule in (gradients_lie or {}).items()
        }
        self.kind = kind
        self.accepts = accepts
        self.domains = tuple(domains)
        self.masks = frozenset(self.inputs.index(mask) for mask in masks)
        # Parameters that are never tensors stand last; they have no edge, as in PyTorch.
        self.tensor_count = len(self.inputs) - len(numbers)
        if self.inputs[self.tensor_count :] != tuple(numbers):
            raise ValueError(f"{name}: the parameters {numbers} must stand last")
        self.kernel.operand_count = self.tensor_count
        exact = numbers if wide is None else wide
        self.kernel.wide = frozenset(self.inputs.index(each) for each in exact)
        self.doc = doc if example is None else f"{doc}\n\n>>> import numgrad as ng\n>>> {example}\n"
        self.deciding = deciding
        self.deciding_out = deciding_out
        self.kernel_name = kernel_name or f"{self.function_name}_cpu"
        self.refuses = dict(refuses or {})
        self.out_differs = out_differs
        self.check = check
        # Real dtypes for which the result has the dtype of the operands, with nothing to check.
        kinds = "f" if kind == "float" else "fiu"
        self.plain_dtypes = frozenset(
            d.numpy
            for d in dtypes.DTYPES.values()
            if d.numpy.kind in kinds and d.numpy.kind in accepts and kind != "bool"
        )
        self._identities: dict[int, bool] = {}
        # What the table holds: of a call that was met twice its program; of how operands lie, what
        # computes the result, and the dtype in which it does; and what public functions look up
        # for plain calls (`numgrad.ops.calls.plain_calls`).
        self.calls = Calls(lambda *operands: self._run(operands), elementwise=True)
        self.find_call = self.calls.programs.get
        if listed:
            enter(self)
            title = doc.partition("\n")[0]
            FORMULAS[name] = Formula(self.inputs, self._symbol, self.rules, kind, accepts, title)

    def _symbol(self, symbols: dict[str, Symbol]) -> Symbol:
        """Return what is computed of symbols."""
        arguments = [symbols[name] for name in self.inputs]
        if self.formula is None:
            return Symbol.apply(self.name, *arguments)
        return literal(self.formula(*arguments))

    def _formula(self, symbols: dict[str, Symbol]) -> list[Symbol]:
        return [self._symbol(symbols)]

    def goes_by(self, position: int) -> tuple[DeclaredRule, bool]:
        """Return the rule as whose operations a gradient lies, and whether it is not its own."""
        declared = self.gradients_lie.get(position)
        own: Any = self.rules[position]
        return (own, False) if declared is None else (declared, True)

    def is_identity(self, position: int) -> bool:
        """Whether the gradient of an operand is the cotangent itself."""
        known = self._identities.get(position)
        if known is None:
            rule, parameters = self.rules[position]  # type: ignore[misc]
            symbols = [Symbol.input(name, is_complex=True) for name in parameters]
            known = self._identities[position] = (
                parameters[0] == "g" and rule(*symbols) is symbols[0]
            )
        return known

    def __call__(self, *operands: Any, out: Tensor | None = None) -> Any:
        """Run on tensors and numbers, or record on symbols."""
        if type(operands[0]) is not Tensor and not any(
            isinstance(operand, Tensor) for operand in operands
        ):
            if any(isinstance(operand, Symbol) for operand in operands):
                if self.formula is None:
                    return Symbol.apply(self.name, *operands)
                return self.formula(*operands)
            self._check_operands(operands)
        return self.call(operands, out)

    def apply(self, *inputs: Any, **parameters: Any) -> Any:
        """Run on tensors and numbers."""
        return self(*inputs, **parameters)

    @cached_property
    def call(self) -> Callable[..., Any]:
        """``call(operands, out=None)``: promote, broadcast, compute, and record what needs it."""
        names = [f"operand{position}" for position in range(len(self.inputs))]
        look, facts = tensor_lines((), names, by_type=True)
        given = ", ".join(names)
        lines = [
            "if call_interceptors or out is not None:",
            "    return run(operands, out)",
            f"{given}{',' * (len(names) == 1)} = operands",
            *look,
            f"key = (defaults.floating, {', '.join(facts)})",
            "program = find(key)",
            "if program is None:",
            "    return meet(key, operands)",
            "try:",
            f"    return program({given})",
            "except OverflowError:  # of an int that is a negative one as int64",
            "    return program(*in_64_bits(operands))",
        ]

        def meet(key: Any, operands: Sequence[Any]) -> Any:
            if all(type(each) in _EXACT for each in operands):
                return self.calls.meet(key, operands, (), tuple(operands))
            return self._run(operands)

        namespace = {**NAMES, "find": self.find_call, "in_64_bits": in_64_bits}
        namespace |= {"meet": meet, "run": self._run}
        return define_lines("call", "operands, out=None", lines, namespace)

    def _run(self, operands: Sequence[Any], out: Tensor | None = None) -> Tensor:
        """Do what `call` does for calls that are not remembered, or not yet."""
        is_traced = modes.trace is not None
        if is_traced:
            if out is None and modes.dual is None:
                return run_traced(self, operands)
            operands = modes.trace.operands(operands)
        values: list[Any] = []
        kinds: list[Any] = []
        records = False
        for operand in operands:
            if isinstance(operand, Tensor):
                if operand._base is not None:
                    refresh_view(operand)
                if operand._edge is not NO_EDGE:
                    records = modes.grad
                values.append(operand._array)
                kinds.append(is_traced or operand._kind or kind_of(operand))
            else:
                note_given(operand)
                values.append(operand)
                kinds.append(dtypes.kind_of_number(operand))
        if is_traced:
            array, compute = traced_result(self, operands, values)
        else:
            call, compute = self._forward_for(kinds, operands, values)
            try:
                array = call(*values)
            except OverflowError:
                values = in_64_bits(values)
                array = call(*values)
        if out is not None:
            if interceptors and modes.dual is not None:
                modes.dual.refuse_out(self.function_name, (*operands, out))
            return write_elementwise(self, values, array, out, records)
        tensor = wrap(array)
        self._settle(operands, (tensor,), {"compute": compute}, records)
        return tensor

    def function_for(self, arrays: Sequence[Any], parameters: dict[str, Any]) -> Callable[..., Any]:
        """Return the forward for arrays that lie as these do, and numbers."""
        is_array = [type(value) is np.ndarray for value in arrays]
        given = [*zip(arrays, is_array, strict=True)]
        kinds = [kind_for(each) if known else dtypes.kind_of_number(each) for each, known in given]
        operands = [wrap(each) if known else each for each, known in given]
        return self._forward_for(kinds, operands, arrays)[0]

    def number_converter(self, position: int, parameters: dict[str, Any]) -> Callable[[Any], Any]:
        """Return what makes of a number what the kernel takes, and what a node saves of it."""
        if position in self.masks:
            return bool
        compute = parameters["compute"]
        if compute in HALVES and position not in self.kernel.wide:
            return rounded
        converted: Callable[[Any], Any] = converter(compute)
        return converted

    def _forward_for(
        self, kinds: Sequence[Any], operands: Sequence[Any], values: Sequence[Any]
    ) -> tuple[Callable[..., Array], np.dtype[Any]]:
        """Return what computes the result of operands of such kinds, and in which dtype."""
        key = (dtypes.defaults.floating, *kinds)
        found: tuple[Callable[..., Array], np.dtype[Any]] | None = self.find_call(key)
        if found is None:
            compute, result, shape = self._resolve_operands(operands)
            casts = [_BOOL if at in self.masks else compute for at in range(len(values))]
            try:
                call = self._prepared(shape, values, casts, result)
            except OverflowError:
                call = self._prepared(shape, in_64_bits(values), casts, result)
            found = self.calls.programs.keep(key, (call, compute))
        return found

    def _prepared(
        self,
        shape: tuple[int, ...],
        values: Sequence[Any],
        casts: Sequence[np.dtype[Any]],
        result: np.dtype[Any],
    ) -> Callable[..., Array]:
        """Return what computes the result of values that lie as these, where it belongs."""
        lying: Any = None
        if self.deciding is not None and len(shape) > 1:
            given = zip(values, casts, strict=True)
            lying = self.lying([as_dtype(v, d) if type(v) is np.ndarray else v for v, d in given])
        found: Any = self.kernel.function_for(
            shape, values, casts, [result], several=False, lying=lying
        )
        return found

    def lying(self, values: Sequence[Any]) -> Sequence[Any] | ResultOrder:
        """Return what decides how a result lies, places and numbers; or how it does."""
        given = [
            place_of(value) if type(value) in _ARRAYS else NUMBER
            for position, value in enumerate(values)
            if type(value) in _ARRAYS or position < self.tensor_count
        ]
        return given if self.deciding is None else self.deciding(given)

    def order_of(self, shape: tuple[int, ...], values: Sequence[Any]) -> ResultOrder:
        """Return how the result of such values lies."""
        lying = self.lying(values)
        return lying if isinstance(lying, ResultOrder) else result_order(shape, lying)

    def _hand_on_tangents(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        parameters: dict[str, Any],
        held: Sequence[Tensor] = (),
    ) -> None:
        """Let the open level of forward mode record and differentiate a call."""
        if outputs[0]._array.dtype.kind in "fc":
            super()._hand_on_tangents(inputs, outputs, parameters, held)

    def _resolve_operands(
        self, operands: Sequence[Any]
    ) -> tuple[np.dtype[Any], np.dtype[Any], tuple[int, ...]]:
        """Find out the dtypes of computation and result, and the shape of the result."""
        tensors = self._check_operands(operands)
        voting = [
            operand for position, operand in enumerate(operands) if position not in self.masks
        ]
        compute, result = self._dtypes(result_dtype(voting))
        return compute, result, broadcast_shapes([tensor._array.shape for tensor in tensors])

    def _check_operands(self, operands: Sequence[Any]) -> list[Tensor]:
        """Return the operands that are tensors; raise for what is neither that nor a number."""
        if self.check is not None:
            self.check(*operands)
        tensors = []
        for position, operand in enumerate(operands):
            if isinstance(operand, Tensor):
                tensors.append(operand)
            elif not isinstance(operand, Number):
                raise TypeError(
                    f"{self.function_name}(): argument '{self.inputs[position]}' (position "
                    f"{position + 1}) must be Tensor, not {type(operand).__name__}"
                )
        if not tensors:
            raise TypeError(
                f"{self.function_name}(): argument '{self.inputs[0]}' (position 1) must be Tensor, "
                f"not {type(operands[0]).__name__}"
            )
        return tensors

    def check_dtype(self, dtype: dtypes.dtype) -> None:
        """Raise PyTorch's error if the operation does not compute with a dtype."""
        kind = dtype.numpy.kind
        if kind in self.accepts:
            return
        error = self.refuses.get(kind)
        if error is not None:
            raise type(error)(*error.args)
        raise NotImplementedError(
            f"\"{self.kernel_name}\" not implemented for '{dtype.scalar_name}'"
        )

    def _dtypes(self, common: dtypes.dtype) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """Return the NumPy dtypes of the computation and of the result."""
        if self.kind == "float" and common.category < dtypes.FLOATING:
            common = dtypes.default_dtype()
        self.check_dtype(common)
        if self.kind == "bool":
            return common.numpy, np.dtype(bool)
        if self.kind == "real":
            return common.numpy, common.to_real().numpy
        return common.numpy, common.numpy

    def _call_of(
        self,
        needs: int,
        inputs: Sequence[Any],
        outputs: Sequence[Tensor],
        parameters: dict[str, Any],
        held: Sequence[Tensor],
    ) -> tuple[Any, str, Sequence[Any]]:
        """Return what nodes of such calls share, the kinds of the operands, and what is kept.

        Of numbers that is what the kernel takes.
        """
        output = outputs[0]._array
        shape, dtype = output.shape, output.dtype
        kinds, equal, kept = "", True, []
        for position, each in enumerate(inputs):
            is_mask = position in self.masks
            if isinstance(each, Tensor):
                array = each._array
                kinds += "m" if is_mask else "t"
                equal = (
                    equal and array.shape == shape and array.dtype == (_BOOL if is_mask else dtype)
                )
            else:
                each = self.number_converter(position, parameters)(each)
                kinds += "q" if is_mask else "n"
            kept.append(each)
        call, count = self.plan(needs, kinds), self.tensor_count
        if not equal:
            call = Call(call, parameters, kept[:count], outputs)
        return call, kinds[:count], kept
