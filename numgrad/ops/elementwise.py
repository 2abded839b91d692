"""The machinery of elementwise primitives: promotion, broadcasting, fused kernels, recording.

`unary`, `binary` and `elementwise` declare a primitive: a formula (or the scalar function of the
same name), the rule of each input, and the domain that tests draw from. See `ops.exponential` for
what declarations look like.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from numgrad import dtypes
from numgrad.graph.accumulate import gradient_edge
from numgrad.graph.core import NO_EDGE, Tensor, refresh_view, wrap
from numgrad.graph.modes import modes
from numgrad.graph.node import FREED, Node, next_sequence, unpack_array
from numgrad.kernels.elementwise import FLOATING, SMALL, Elementwise
from numgrad.kernels.expression import Symbol, literal
from numgrad.ops.domains import Domain
from numgrad.ops.primitive import CATALOGUE, Primitive, Rule, make_node_class, restore_tensor

__all__ = [
    "ElementwisePrimitive",
    "binary",
    "broadcast_shapes",
    "elementwise",
    "result_dtype",
    "unary",
]

Array = np.ndarray[Any, Any]
Number = (bool, int, float, complex, np.number, np.bool_)

# What `kind` may be: how dtypes of operands decide the dtype of the computation and the result.
#   same    compute and return the promoted dtype
#   float   as same, but integers and bools become the default floating point dtype
#   bool    compute in the promoted dtype, return bool
#   real    as same, but a complex operand gives its real dtype
_KINDS = ("same", "float", "bool", "real")


def result_dtype(operands: Sequence[Any]) -> dtypes.dtype:
    """Return the dtype that tensors and Python scalars promote to.

    Tensors with dimensions count most; 0-d tensors, then Python scalars, only raise the category.
    """
    ranked: list[dtypes.dtype | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, Tensor):
            rank = 0 if operand._array.ndim else 1
            dtype = dtypes.of_numpy(operand._array.dtype)
        else:
            rank, dtype = 2, dtypes.scalar_dtype(operand)
        present = ranked[rank]
        ranked[rank] = dtype if present is None else dtypes.promote_types(present, dtype)
    result: dtypes.dtype | None = None
    for candidate in ranked:
        if candidate is None:
            continue
        if result is None:
            result = candidate
        elif candidate.category > result.category:
            result = _raise_category(result, candidate)
    if result is None:
        raise ValueError("result_dtype needs at least one operand")
    return result


def _raise_category(result: dtypes.dtype, dtype: dtypes.dtype) -> dtypes.dtype:
    if result.is_floating_point:
        return result.to_complex()
    return dtypes.promote_types(result, dtype) if result.category == dtypes.BOOL else dtype


def broadcast_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape that all shapes broadcast to.

    Raises
    ------
    RuntimeError
        In PyTorch's words, if two lengths differ and neither is 1.
    """
    result = shapes[0]
    for shape in shapes[1:]:
        if shape == result:
            continue
        if len(shape) > len(result):
            long, short = shape, result
        else:
            long, short = result, shape
        offset = len(long) - len(short)
        merged = list(long)
        for position, length in enumerate(short):
            other = long[offset + position]
            if length == other or length == 1:
                continue
            if other != 1:
                a, b = (other, length) if long is result else (length, other)
                raise RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                    f"non-singleton dimension {offset + position}"
                )
            merged[offset + position] = length
        result = tuple(merged)
    return result


class ElementwiseNode(Node):
    """The node of an elementwise primitive: one fused kernel for all gradients that are needed."""

    __slots__ = ("metas", "plan")

    primitive: ClassVar[ElementwisePrimitive]
    plan: _Plan
    metas: Any  # None where every tensor input has the output's shape and dtype; else see _record

    def run_arrays(self, gradients: Sequence[Any]) -> Sequence[tuple[Any, bool | None] | None]:
        """Run the fused gradient kernel."""
        gradient = gradients[0]
        plan = self.plan
        if gradient is None:
            return plan.nothing
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        if plan.passes_through:
            pairs = plan.pass_through(gradient)
            if self.metas is None:
                return pairs
            return [pair and self._fit(pair, position) for position, pair in enumerate(pairs)]
        shape, dtype, metas = gradient.shape, gradient.dtype, self.metas
        small = metas is None and gradient.size <= SMALL and dtype in FLOATING
        operands = [gradient.ravel() if small else gradient]
        pattern = "a"
        for position, item in zip(plan.positions, saved):  # noqa: B905 - same length, and hot
            if type(item) is tuple:
                array, counter, version = item
                if counter[0] != version:
                    unpack_array(item, (self, 0) if position < 0 else self.edges[position], self)
                if small:
                    array = array.ravel()
                    pattern += "b" if array.dtype == bool else "a"
                operands.append(array)
            else:
                operands.append(item)
                pattern += "p" if type(item) is bool else "s"
        kernel, count = plan.kernel, plan.kernel_outputs
        if small:
            entry = plan.entries.get(pattern + dtype.char)
            if entry is None:
                entry = plan.entries[pattern + dtype.char] = kernel.entry(pattern, dtype, count)
            first = np.empty(shape, dtype)
            if count == 1:
                entry(*operands, first.ravel())
                arrays = [first]
            else:
                arrays = [first, *[np.empty(shape, dtype) for _ in range(count - 1)]]
                entry(*operands, *[array.ravel() for array in arrays])
        elif metas is None:
            arrays = kernel(shape, operands, [dtype] * count)
        else:
            arrays = self._run_unequal(kernel, gradient, operands)
        if metas is None and plan.all_computed:
            return [(array, True) for array in arrays]
        results: list[tuple[Any, bool | None] | None] = []
        at = 0
        for need, source in zip(plan.mask, plan.sources, strict=True):
            if not need:
                results.append(None)
                continue
            if source is None:
                pair: tuple[Array, bool | None] = (gradient, False)
            else:
                pair = (arrays[at], True)
                at += 1
            results.append(pair if self.metas is None else self._fit(pair, len(results)))
        return results

    def _run_unequal(self, kernel: Any, gradient: Array, operands: list[Any]) -> list[Array]:
        """Run the kernel for operands that were broadcast or cast on the way forward."""
        compute, input_metas = self.metas
        cast = operands[:1]
        for position, operand in zip(self.plan.positions, operands[1:], strict=True):
            is_input = type(operand) is np.ndarray and position >= 0
            if is_input and operand.dtype != compute and position not in self.primitive.masks:
                operand = operand.astype(compute)
            cast.append(operand)
        dtypes_out = []
        for need, source, meta in zip(self.plan.mask, self.plan.sources, input_metas, strict=True):
            if need and source is not None:
                # A real input of a complex operation gets the real part of its gradient in _fit.
                dtypes_out.append(self.primitive.gradient_dtype(gradient.dtype, compute, meta))
        arrays: list[Array] = kernel(gradient.shape, cast, dtypes_out)
        return arrays

    def _fit(self, pair: tuple[Array, bool | None], position: int) -> tuple[Array, bool | None]:
        """Return a gradient in its input's shape and dtype."""
        array, _ = pair
        shape, dtype = self.metas[1][position]
        if array.shape == shape and array.dtype == dtype:
            return pair
        tensor = wrap(array)
        if array.shape != shape:
            tensor = Primitive.sum_to_size(tensor, shape)
        if array.dtype != dtype:
            tensor = Primitive.cast(tensor, dtype)
        return (tensor._array, tensor._base is None and tensor._array is not array)

    def run_tensors(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Run the rules on tensors; under grad mode that records them."""
        gradient = gradients[0]
        plan = self.plan
        if gradient is None:
            return [None] * len(self.edges)
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        environment: dict[str, Any] = {"g": gradient}
        names = self.primitive.inputs
        for position, item in zip(plan.positions, saved, strict=True):
            if type(item) is not tuple:
                environment[names[position]] = item
            elif position < 0:
                environment["y"] = restore_tensor(item, (self, 0), self)
            else:
                environment[names[position]] = restore_tensor(item, self.edges[position])
        results: list[Tensor | None] = []
        for position, need in enumerate(plan.mask):
            if not need:
                results.append(None)
                continue
            rule, parameters = self.primitive.rules[position]  # type: ignore[misc]
            result = rule(*[environment[name] for name in parameters])
            if self.metas is not None:
                shape, dtype = self.metas[1][position]
                if result._array.shape != shape:
                    result = Primitive.sum_to_size(result, shape)
                if result._array.dtype != dtype:
                    result = Primitive.cast(result, dtype)
            results.append(result)
        return results


class _Plan:
    """What to save and which kernel to run, for one choice of inputs that need a gradient.

    Attributes
    ----------
    mask : tuple of bool
        Which inputs get a gradient.
    positions : tuple of int
        What is saved, in order: the positions of inputs, and -1 for the output.
    sources : tuple
        For each input None if its gradient is the cotangent itself, else True.
    """

    __slots__ = (
        "all_computed",
        "entries",
        "kernel",
        "kernel_outputs",
        "mask",
        "nothing",
        "ownership",
        "passes_through",
        "positions",
        "sources",
    )

    def __init__(self, primitive: ElementwisePrimitive, needs: int) -> None:
        self.mask = tuple(
            bool((needs >> position) & 1) and primitive.rules[position] is not None
            for position in range(primitive.tensor_count)
        )
        self.nothing = [None] * len(self.mask)
        wanted = [position for position, need in enumerate(self.mask) if need]
        named: list[str] = []
        for position in wanted:
            named += primitive.rules[position][1]  # type: ignore[index]
        self.positions = tuple(
            position for position, name in enumerate(primitive.inputs) if name in named
        ) + ((-1,) if "y" in named else ())
        self.sources = tuple(
            None if not need or primitive.is_identity(position) else True
            for position, need in enumerate(self.mask)
        )
        self.passes_through = not any(self.sources)
        # The only receiver of the cotangent itself may write to it if we might have.
        self.ownership = None if len(wanted) == 1 else False
        self.all_computed = all(self.sources)
        computed = [position for position in wanted if self.sources[position]]
        self.kernel_outputs = len(computed)
        operand_names = ["y" if p < 0 else primitive.inputs[p] for p in self.positions]

        def formula(symbols: dict[str, Symbol]) -> list[Symbol]:
            outputs = []
            for position in computed:
                rule, parameters = primitive.rules[position]  # type: ignore[misc]
                outputs.append(literal(rule(*[symbols[name] for name in parameters])))
            return outputs

        title = f"{primitive.name}, gradient of {', '.join(primitive.inputs[p] for p in computed)}"
        self.kernel = Elementwise(title, ["g", *operand_names], formula)
        self.entries: dict[str, Any] = {}  # by pattern and dtype

    def pass_through(self, gradient: Array) -> list[tuple[Array, bool | None] | None]:
        """Return the cotangent as the gradient of every input that needs one."""
        pair = (gradient, self.ownership)
        return [pair if need else None for need in self.mask]


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
    ) -> None:
        if kind not in _KINDS:
            raise ValueError(f"kind must be one of {_KINDS}, not {kind!r}")
        if len(domains) != len(inputs):
            raise ValueError(f"{name}: every operand needs a domain to draw test points from")
        if len(vjp) != len(inputs):
            raise ValueError(f"{name}: every operand needs a rule, or None")
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
        self.kind = kind
        self.accepts = accepts
        self.domains = tuple(domains)
        self.masks = frozenset(self.inputs.index(mask) for mask in masks)
        # Parameters that are never tensors stand last; they have no edge, as in PyTorch.
        self.tensor_count = len(self.inputs) - len(numbers)
        if self.inputs[self.tensor_count :] != tuple(numbers):
            raise ValueError(f"{name}: the parameters {numbers} must stand last")
        self.doc = doc
        self.kernel = Elementwise(name, inputs, self._formula)
        self.node_class: Any = make_node_class(node, ElementwiseNode, primitive=self)
        self.plans: dict[int, _Plan] = {}
        # Real dtypes for which the result has the dtype of the operands, with nothing to check.
        kinds = "f" if kind == "float" else "fiu"
        self.plain_dtypes = frozenset(
            d.numpy
            for d in dtypes.DTYPES.values()
            if d.numpy.kind in kinds and d.numpy.kind in accepts and kind != "bool"
        )
        self._identities: dict[int, bool] = {}
        if name in CATALOGUE:
            raise ValueError(f"the catalogue has a primitive called {name} already")
        CATALOGUE[name] = self

    def _formula(self, symbols: dict[str, Symbol]) -> list[Symbol]:
        arguments = [symbols[name] for name in self.inputs]
        if self.formula is None:
            return [Symbol.apply(self.name, *arguments)]
        return [literal(self.formula(*arguments))]

    def is_mask(self, position: int) -> bool:
        """Whether an operand is a bool mask, which takes no part in promotion."""
        return position in self.masks

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

    def gradient_dtype(self, gradient: Any, compute: Any, meta: Any) -> np.dtype[Any]:
        """Return the dtype in which an operand's gradient is computed."""
        if gradient.kind == "c" or compute.kind == "c":
            wide = compute if compute.kind == "c" else gradient
            return np.dtype(wide)
        return np.dtype(gradient)

    def plan(self, needs: int) -> _Plan:
        """Return the plan for the inputs whose bits are set in `needs`."""
        plan = self.plans.get(needs)
        if plan is None:
            plan = self.plans[needs] = _Plan(self, needs)
        return plan

    def __call__(self, *operands: Any, out: Tensor | None = None) -> Any:
        """Run on tensors and numbers, or record on symbols."""
        if not any(isinstance(operand, Tensor) for operand in operands):
            if any(isinstance(operand, Symbol) for operand in operands):
                if self.formula is None:
                    return Symbol.apply(self.name, *operands)
                return self.formula(*operands)
            self._check_operands(operands)
        return self.apply(operands, out)

    def apply(self, operands: Sequence[Any], out: Tensor | None = None) -> Tensor:
        """Promote, broadcast, compute, and record a node where one is needed."""
        tensors = self._check_operands(operands)
        voting = [
            operand for position, operand in enumerate(operands) if position not in self.masks
        ]
        common = result_dtype(voting)
        compute, result = self._dtypes(common)
        arrays: list[Any] = []
        for position, operand in enumerate(operands):
            if isinstance(operand, Tensor):
                array = operand._array
                if array.dtype != compute and position not in self.masks:
                    array = array.astype(compute)
                arrays.append(array)
            elif position in self.masks:
                arrays.append(bool(operand))
            else:
                arrays.append(_convert_number(operand, compute))
        shape = broadcast_shapes([tensor._array.shape for tensor in tensors])
        records = modes.grad and any(tensor._edge is not NO_EDGE for tensor in tensors)
        if out is not None:
            return self._write(out, shape, arrays, compute, result, records)
        (array,) = self.kernel(shape, arrays, [result])
        tensor = wrap(array)
        if records and result.kind in "fc":
            self._record(tensor, operands, arrays, compute)
        return tensor

    def _check_operands(self, operands: Sequence[Any]) -> list[Tensor]:
        """Return the operands that are tensors; raise for what is neither that nor a number."""
        tensors = []
        for position, operand in enumerate(operands):
            if isinstance(operand, Tensor):
                if operand._base is not None:
                    refresh_view(operand)
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
        compute: np.dtype[Any],
        result: np.dtype[Any],
        records: bool,
    ) -> Tensor:
        """Compute into `out`, which keeps its dtype."""
        if records or (modes.grad and out._edge is not NO_EDGE):
            raise RuntimeError(
                f"{self.function_name}(): functions with out=... arguments don't support automatic "
                "differentiation, but one of the arguments requires grad."
            )
        target = out._array
        if not dtypes.can_cast(dtypes.of_numpy(result), dtypes.of_numpy(target.dtype)):
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
            out._array = target = np.empty(shape, target.dtype)
        overlaps = any(
            type(array) is np.ndarray and array is not target and np.may_share_memory(array, target)
            for array in arrays
        )
        if target.dtype == result and target.flags.c_contiguous and not overlaps:
            self.kernel(shape, arrays, [result], [target])
        else:
            target[...] = self.kernel(shape, arrays, [result])[0]
        out._counter[0] += 1
        return out

    def _record(
        self, tensor: Tensor, operands: Sequence[Any], arrays: list[Any], compute: np.dtype[Any]
    ) -> None:
        """Attach a node to the result."""
        needs = 0
        edges = []
        metas: list[Any] = []
        output = tensor._array
        equal = True
        for position, operand in enumerate(operands):
            if not isinstance(operand, Tensor):
                metas.append(None)
                edges.append(NO_EDGE)
                continue
            edge = gradient_edge(operand)
            edges.append(edge)
            if edge is not NO_EDGE and self.rules[position] is not None:
                needs |= 1 << position
            metas.append((operand._array.shape, operand._array.dtype))
            like_output = metas[-1] == (output.shape, output.dtype)
            if not like_output and (position not in self.masks or metas[-1][0] != output.shape):
                equal = False
        plan = self.plan(needs)
        if not needs:
            # Operations without a derivative (floor, sign, ...) have rules that give zeros; here
            # only operands without a rule (a mask, a parameter) require grad.
            return
        node = self.node_class.__new__(self.node_class)
        node.edges = tuple(edges[: self.tensor_count])
        node.sequence = next_sequence()
        node._metadata = node._tensor_hooks = node._retained = None
        node.plan = plan
        node.metas = None if equal else (compute, metas[: self.tensor_count])
        saved: list[Any] = []
        for position in plan.positions:
            if position < 0:
                saved.append((output, tensor._counter, tensor._counter[0]))
            elif isinstance(operands[position], Tensor):
                operand = operands[position]
                saved.append((operand._array, operand._counter, operand._counter[0]))
            else:
                saved.append(arrays[position])
        node.saved = tuple(saved)
        tensor._edge = (node, 0)


def _convert_number(value: Any, compute: np.dtype[Any]) -> Any:
    """Return a Python number of the category of the computation."""
    if compute.kind == "f":
        return float(value)
    if compute.kind == "c":
        return complex(value)
    if compute.kind == "b":
        return bool(value)
    return int(value)


def unary(
    name: str,
    vjp: Rule | None,
    domain: Domain,
    *,
    formula: Callable[..., Any] | None = None,
    kind: str = "float",
    accepts: str = "fc",
    node: str | None = None,
    doc: str,
) -> ElementwisePrimitive:
    """Declare an operation of one operand, called ``input``.

    Parameters
    ----------
    name : str
        Its name, and that of its scalar function if no formula is given.
    vjp : callable or None
        The rule: a function of some of ``g``, ``y``, ``input``.
    domain : Domain
        Where it is defined and smooth.
    formula : callable, optional
        The operation in terms of other elementwise operations.
    kind : {"float", "same", "bool", "real"}
        How the operand's dtype decides the result's.
    accepts : str
        The NumPy dtype kinds it computes with.
    node : str, optional
        PyTorch's name for the node, if it is not the name with ``Backward0``.
    doc : str
        The first line of the docstring, then the derivative.
    """
    return ElementwisePrimitive(
        name,
        ("input",),
        formula,
        (vjp,),
        node=node or f"{name.title().replace('_', '')}Backward0",
        kind=kind,
        accepts=accepts,
        domains=(domain,),
        doc=doc,
    )


def binary(
    name: str,
    vjp: tuple[Rule | None, Rule | None],
    domains: tuple[Domain, Domain],
    *,
    formula: Callable[..., Any] | None = None,
    kind: str = "same",
    accepts: str = "fciu",
    node: str | None = None,
    function_name: str | None = None,
    doc: str,
) -> ElementwisePrimitive:
    """Declare an operation of two operands, ``input`` and ``other``; see `unary`."""
    return ElementwisePrimitive(
        name,
        ("input", "other"),
        formula,
        vjp,
        node=node or f"{name.title().replace('_', '')}Backward0",
        kind=kind,
        accepts=accepts,
        domains=domains,
        function_name=function_name,
        doc=doc,
    )


def elementwise(
    name: str,
    inputs: Sequence[str],
    vjp: Sequence[Rule | None],
    domains: Sequence[Domain],
    *,
    formula: Callable[..., Any] | None = None,
    kind: str = "same",
    accepts: str = "fciu",
    node: str,
    doc: str,
    masks: Sequence[str] = (),
    numbers: Sequence[str] = (),
    function_name: str | None = None,
) -> ElementwisePrimitive:
    """Declare an operation of any operands; see `unary`.

    `masks` names the operands that are bool masks, `numbers` those that are parameters: neither
    takes part in promotion.
    """
    return ElementwisePrimitive(
        name,
        inputs,
        formula,
        vjp,
        node=node,
        kind=kind,
        accepts=accepts,
        domains=domains,
        masks=masks,
        numbers=numbers,
        doc=doc,
        function_name=function_name,
    )
