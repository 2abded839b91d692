"""Elementwise primitives: one declaration, from which kernels, nodes and functions follow.

A primitive is a formula (or the scalar function of the same name), the rule of each input, and the
domain that tests draw from. `numgrad.ops.core.declare` has the functions that declare one, and
`numgrad.ops.pointwise.exponential` shows what that looks like.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numgrad.base import dtypes
from numgrad.base.tuning import REMEMBERED_CALLS
from numgrad.codegen.expression import Symbol, literal
from numgrad.graph.anomaly import note_node, note_write
from numgrad.graph.inplace import before_write, check_counted, write_elements
from numgrad.graph.modes import call_interceptors, interceptors, modes
from numgrad.graph.recorder import at_hand, note_given
from numgrad.graph.saved_tensors import pack_saved
from numgrad.graph.tensor import NO_EDGE, Tensor, refresh_view, wrap
from numgrad.kernels.move.memory_order import as_dtype, empty_for, in_order_of
from numgrad.kernels.pointwise.flat_calls import converter
from numgrad.math.functions import FORMULAS, Formula
from numgrad.ops.core.domains import Domain
from numgrad.ops.core.gradient_plan import ElementwiseNode, GradientPlan, UnequalCall
from numgrad.ops.core.half_kernels import ElementwiseKernel
from numgrad.ops.core.primitive import Rule, check_name, check_names, enter, make_node_class
from numgrad.ops.core.programs import attach_for, compile_call
from numgrad.ops.core.promotion import broadcast_shapes, result_dtype
from numgrad.ops.core.steps import Step, Steps

__all__ = ["ElementwisePrimitive"]

Array = np.ndarray[Any, Any]
Number = (bool, int, float, complex, np.number, np.bool_)
_EXACT = (Tensor, bool, int, float, complex)

# What `kind` may be: how dtypes of operands decide the dtype of the computation and the result.
#   same    compute and return the promoted dtype
#   float   as same, but integers and bools become the default floating point dtype
#   bool    compute in the promoted dtype, return bool
#   real    as same, but a complex operand gives its real dtype
_KINDS = ("same", "float", "bool", "real")


def _assign(target: Array, values: Array) -> None:
    """Write values of any dtype; what `target` can't hold is infinite there, without a word."""
    if values.dtype is target.dtype:
        target[...] = values
        return
    with np.errstate(over="ignore", invalid="ignore"):
        target[...] = values


class ElementwisePrimitive:
    """An elementwise operation: one declaration from which everything else follows.

    Calling it runs it on tensors, Python numbers, or the symbols of a formula.

    Attributes
    ----------
    name : str
        Its name in the catalogue, and of its scalar function.
    inputs : tuple of str
        The names of its operands.
    rules : tuple
        For each operand (rule, names of the rule's parameters), or None where no gradient flows.
    domains : tuple of Domain
        For each operand, where it is defined and smooth; tests draw from it.
    """

    view = by_numbers = multiple_views = False
    writes = None

    def __init__(
        self,
        name: str,
        inputs: Sequence[str],
        formula: Callable[..., Any] | None,
        vjp: Sequence[Rule | None],
        *,
        node: str,
        kind: str,
        accepts: str,
        domains: Sequence[Domain],
        doc: str,
        masks: Sequence[str] = (),
        numbers: Sequence[str] = (),
        function_name: str | None = None,
        deciding: Callable[[list[Array]], list[Array]] | None = None,
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
        check_names(name, inputs)
        self.name = name
        self.function_name = function_name or name
        self.inputs = tuple(inputs)
        self.formula = formula
        self.rules: tuple[tuple[Rule, tuple[str, ...]] | None, ...] = tuple(
            None if rule is None else (rule, tuple(inspect.signature(rule).parameters))
            for rule in vjp
        )
        for declared in self.rules:
            unknown = set(declared[1]) - {"g", "y", *inputs} if declared else set()
            if unknown:
                raise ValueError(f"{name}: a rule names {sorted(unknown)}, which are not operands")
        # Of an operation of one operand, whose rule names the output alone: a more accurate rule,
        # which names the input, too.
        self.closer = (
            None if closer is None else (closer, tuple(inspect.signature(closer).parameters))
        )
        # How gradients lie in memory, where not as their rules' operations would lay them out.
        self.gradients_lie = {
            self.inputs.index(name): (rule, tuple(inspect.signature(rule).parameters))
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
        self.doc = doc
        # Which operands decide on the layout of the result, if not all in their order.
        self.deciding = deciding
        self.kernel = ElementwiseKernel(name, inputs, self._formula)
        named = {name for declared in self.rules if declared for name in declared[1]}
        self.node_class: Any = make_node_class(node, ElementwiseNode, named - {"g"}, primitive=self)
        self.plans: dict[tuple[int, str], GradientPlan] = {}
        # Real dtypes for which the result has the dtype of the operands, with nothing to check.
        kinds = "f" if kind == "float" else "fiu"
        self.plain_dtypes = frozenset(
            d.numpy
            for d in dtypes.DTYPES.values()
            if d.numpy.kind in kinds and d.numpy.kind in accepts and kind != "bool"
        )
        self._identities: dict[int, bool] = {}
        # For how operands lie, what computes the result; beside which of them require grad, what
        # does the whole call, once that was met twice.
        self._specialised: dict[Any, tuple[Callable[..., Array], np.dtype[Any]]] = {}
        self._programs: dict[Any, Callable[..., Any] | None] = {}
        self._seen: set[Any] = set()
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

    def goes_by(self, position: int) -> tuple[tuple[Rule, tuple[str, ...]], bool]:
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

    def plan(self, needs: int, kinds: str) -> GradientPlan:
        """Return the plan for the inputs whose bits are set in `needs`.

        `kinds` tells for each operand whether it is a tensor, ``t`` (a mask: ``m``), or a number,
        ``n`` (a mask: ``q``).
        """
        plan = self.plans.get((needs, kinds))
        if plan is None:
            plan = self.plans[needs, kinds] = GradientPlan(self, needs, kinds)
        return plan

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
        return self.apply(operands, out)

    def apply(self, operands: Sequence[Any], out: Tensor | None = None) -> Tensor:
        """Promote, broadcast, compute, and record a node where one is needed."""
        if call_interceptors or out is not None:
            return self._apply_unseen(operands, out)
        key: list[Any] = [dtypes.defaults.floating]
        needs, bit = 0, 1
        for operand in operands:
            if type(operand) is Tensor:
                if operand._base is not None:
                    refresh_view(operand)
                if operand._edge is not NO_EDGE:
                    needs += bit
                array = operand._array
                key += (array.dtype, array.shape, array.strides)
            else:
                key.append(type(operand))
            bit += bit
        key.append(needs and (needs if modes.grad else 0))
        key_of_call = tuple(key)
        program = self._programs.get(key_of_call)
        if program is not None:
            known: Tensor = program(*operands)
            return known
        return self._apply_unseen(operands, out, key_of_call)

    def _apply_unseen(
        self, operands: Sequence[Any], out: Tensor | None, key_of_call: Any = None
    ) -> Tensor:
        """Do what `apply` does for calls that are not remembered, or not yet."""
        if modes.trace is not None or (
            out is not None and (interceptors or self.deciding is not None)
        ):
            return self._apply_general(operands, out)
        key: list[Any] = [dtypes.defaults.floating]
        values: list[Any] = []
        records = False
        for operand in operands:
            if isinstance(operand, Tensor):
                if operand._base is not None:
                    refresh_view(operand)
                if operand._edge is not NO_EDGE:
                    records = modes.grad
                value: Any = operand._array
                key += (value.dtype, value.shape, value.strides)
            else:
                value = operand
                key.append(type(value))
            values.append(value)
        found = self._specialised.get(tuple(key)) or self._specialise(tuple(key), operands, values)
        call, compute = found
        array = call(*values)
        if out is not None:
            return self._write(out, array.shape, values, array.dtype, records, array)
        tensor = wrap(array)
        if interceptors and modes.dual is not None:
            if tensor._array.dtype.kind in "fc":
                self._hand_on_tangents(tensor, operands, compute)
        elif records and tensor._array.dtype.kind in "fc":
            self._record(tensor, operands, compute)
        if interceptors and modes.steps is not None:
            modes.steps.note(self, operands, {"compute": compute}, (tensor,), call)
        elif key_of_call is not None and not modes.inference:
            self._remember(key_of_call, operands, tensor, call, compute)
        return tensor

    def _remember(
        self,
        key: tuple[Any, ...],
        operands: Sequence[Any],
        tensor: Tensor,
        call: Callable[..., Array],
        compute: np.dtype[Any],
    ) -> None:
        """Make a program of calls that a key stands for, if it is not met for the first time."""
        if key in self._programs:
            return  # there is none
        if key not in self._seen:
            if len(self._seen) >= REMEMBERED_CALLS:
                self._seen.clear()
            self._seen.add(key)
            return
        steps = Steps()
        steps.note(self, operands, {"compute": compute}, (tensor,), call)
        exact = all(type(each) in _EXACT for each in operands)
        program = compile_call(operands, steps, tensor, in_order=True) if exact else None
        if len(self._programs) >= REMEMBERED_CALLS:
            self._programs.clear()
        self._programs[key] = program

    def number_converter(self, position: int, step: Step) -> Callable[[Any], Any]:
        """Return what makes of a number what a node saves of it."""
        converted: Callable[[Any], Any] = converter(step.parameters["compute"])
        return bool if position in self.masks else converted

    def _specialise(
        self, key: tuple[Any, ...], operands: Sequence[Any], values: Sequence[Any]
    ) -> tuple[Callable[..., Array], np.dtype[Any]]:
        """Find out what calls with such operands take, and remember it.

        Returned are what computes the result, and the dtype in which it does.
        """
        compute, result, shape = self._resolve_operands(operands)
        casts = [
            np.dtype(bool) if position in self.masks else compute for position in range(len(values))
        ]
        call = None
        if self.deciding is None or all(
            array.flags.c_contiguous for array in _arrays_among(values)
        ):
            call = self.kernel.short(shape, values, casts, result)
        if call is None:
            call = self._in_general(shape, compute, result)
        if len(self._specialised) >= REMEMBERED_CALLS:
            self._specialised.clear()
        self._specialised[key] = call, compute
        return call, compute

    def _in_general(
        self, shape: tuple[int, ...], compute: np.dtype[Any], result: np.dtype[Any]
    ) -> Callable[..., Array]:
        """Return what computes a result that threads share, or that lies in an order of its own."""

        def call(*values: Any) -> Array:
            arrays = self._converted(values, compute)
            (array,) = self.kernel(shape, arrays, [result])
            if self.deciding is not None:
                array = in_order_of(array, self.deciding(_arrays_among(arrays)))
            return array

        return call

    def _converted(self, values: Sequence[Any], compute: np.dtype[Any]) -> list[Any]:
        """Return operands as the kernel takes them; in a trace, as it records them."""
        arrays: list[Any] = []
        for position, value in enumerate(values):
            if isinstance(value, Number):
                arrays.append(self._number(position, value, compute))
            elif value.dtype is compute or position in self.masks:
                arrays.append(value)
            elif modes.trace is None:
                arrays.append(as_dtype(value, compute))
            else:
                arrays.append(at_hand(value).astype(compute, "K", copy=False))
        return arrays

    def _apply_general(self, operands: Sequence[Any], out: Tensor | None) -> Tensor:
        """Do what `apply` does while tracing, and for outputs that are more than assigned to."""
        records = False
        values = []
        for operand in operands:
            if isinstance(operand, Tensor):
                if operand._base is not None:
                    refresh_view(operand)
                if operand._edge is not NO_EDGE:
                    records = modes.grad
                values.append(operand._array)
            else:
                note_given(operand)
                values.append(operand)
        compute, result, shape = self._resolve_operands(operands)
        arrays = self._converted(values, compute)
        if out is not None:
            if modes.dual is not None:
                modes.dual.refuse_out(self.function_name, (*operands, out))
            return self._write(out, shape, arrays, result, records)
        tensor = wrap(modes.trace.elementwise(self, shape, arrays, result))
        if result.kind in "fc":
            if modes.dual is not None:
                self._hand_on_tangents(tensor, operands, compute)
            elif records:
                self._record(tensor, operands, compute)
        return tensor

    def _number(self, position: int, value: Any, compute: np.dtype[Any]) -> Any:
        """Return an operand that is no tensor as the kernel takes it."""
        return bool(value) if position in self.masks else converter(compute)(value)

    def _hand_on_tangents(
        self, tensor: Tensor, operands: Sequence[Any], compute: np.dtype[Any]
    ) -> None:
        """Let the open level of forward mode record and differentiate a call."""
        modes.dual.record(
            lambda operands, tensors, moving: self._record(tensors[0], operands, compute, moving),
            operands,
            (tensor,),
        )

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
        tensors = []
        for position, operand in enumerate(operands):
            if isinstance(operand, Tensor):
                tensors.append(operand)
            elif not isinstance(operand, Number) or (position == 0 and len(operands) == 1):
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

    def _dtypes(self, common: dtypes.dtype) -> tuple[np.dtype[Any], np.dtype[Any]]:
        """Return the NumPy dtypes of the computation and of the result."""
        if self.kind == "float" and common.category < dtypes.FLOATING:
            common = dtypes.default_dtype()
        if common.numpy.kind not in self.accepts:
            raise RuntimeError(
                f"\"{self.function_name}_cpu\" not implemented for '{common.scalar_name}'"
            )
        if self.kind == "bool":
            return common.numpy, np.dtype(bool)
        if self.kind == "real":
            return common.numpy, common.to_real().numpy
        return common.numpy, common.numpy

    def _write(
        self,
        out: Tensor,
        shape: tuple[int, ...],
        arrays: list[Any],
        result: np.dtype[Any],
        records: bool,
        values: Array | None = None,
    ) -> Tensor:
        """Write the result to `out`, which keeps its dtype; `values` are it, if known already."""
        if (records and self.kind != "bool") or (modes.grad and out._edge is not NO_EDGE):
            raise RuntimeError(
                f"{self.function_name}(): functions with out=... arguments don't support automatic "
                "differentiation, but one of the arguments requires grad."
            )
        if type(out._counter) is not list:
            check_counted(out)
        target = out._array
        if result is not target.dtype and not dtypes.can_cast(
            dtypes.of_numpy(result), dtypes.of_numpy(target.dtype)
        ):
            raise RuntimeError(
                f"result type {dtypes.of_numpy(result).scalar_name} can't be cast to the desired "
                f"output type {out.dtype.scalar_name}"
            )
        if target.shape != shape:
            # An operand that is written to keeps its shape; an output that is no operand may grow.
            if target.size or any(array is target for array in arrays):
                raise RuntimeError(
                    f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                    f"{list(shape)}"
                )
            deciding = _arrays_among(arrays if values is None else [values])
            if self.deciding is not None and values is None:
                deciding = self.deciding(deciding)
            if self.kind == "real" and any(
                array.dtype.kind == "c" for array in _arrays_among(arrays)
            ):
                deciding = []  # PyTorch makes room for the numbers before it computes
            out._array = target = empty_for(shape, target.dtype, deciding)
        if modes.trace is not None:
            write_elements(out, ..., modes.trace.elementwise(self, shape, arrays, result))
            return out
        if interceptors:
            before_write(out)
        if values is not None:
            _assign(target, values)
            out._counter[0] += 1
            return out
        overlaps = any(
            type(array) is np.ndarray and array is not target and np.may_share_memory(array, target)
            for array in arrays
        )
        if target.dtype == result and target.flags.c_contiguous and not overlaps:
            self.kernel(shape, arrays, [result], [target])
        else:
            _assign(target, self.kernel(shape, arrays, [result])[0])
        out._counter[0] += 1
        if interceptors:
            note_write(out._counter)
        return out

    def _note(self, tensor: Tensor, operands: Sequence[Any], plan: GradientPlan) -> None:
        """Let who observes operations know of the node of a result."""
        node: Any = tensor._edge[0]  # type: ignore[index]
        note_node(node)
        if modes.saved_hooks and plan.positions:
            pack_saved(node, [tensor if p < 0 else operands[p] for p in plan.positions])

    def _record(
        self,
        tensor: Tensor,
        operands: Sequence[Any],
        compute: np.dtype[Any],
        moving: int = 0,
    ) -> None:
        """Attach a node to the result.

        The operands whose bits are set in `moving` have a tangent, and need the node as those do
        that require grad.
        """
        needs, kinds = 0, ""
        metas: list[Any] = []
        values: list[Any] = []
        output = tensor._array
        equal = True
        for position, operand in enumerate(operands):
            is_mask = position in self.masks
            if not isinstance(operand, Tensor):
                metas.append(None)
                values.append(self._number(position, operand, compute))
                kinds += "q" if is_mask else "n"
                continue
            values.append(operand)
            if operand._base is not None:
                refresh_view(operand)
            wanted = operand._edge is not NO_EDGE or moving >> position & 1
            if wanted and self.rules[position] is not None:
                needs |= 1 << position
            array = operand._array
            metas.append((array.shape, array.dtype))
            kinds += "m" if is_mask else "t"
            expected = np.dtype(bool) if is_mask else output.dtype
            equal = equal and array.shape == output.shape and array.dtype == expected
        if not needs:
            # Operations without a derivative (floor, sign, ...) have rules that give zeros; here
            # only operands without a rule (a mask, a parameter) require grad.
            return
        plan = self.plan(needs, kinds)
        count = self.tensor_count
        call = plan if equal else UnequalCall(plan, (compute, metas[:count]))
        tensors = tuple([isinstance(operand, Tensor) for operand in operands[:count]])
        attach = attach_for(plan.saved_places, tensors, (0,))
        attach(self.node_class, call, values, (tensor,))
        if interceptors:
            self._note(tensor, operands, plan)


def _arrays_among(values: Sequence[Any]) -> list[Array]:
    return [value for value in values if type(value) is np.ndarray]
