"""The plan of an elementwise operation's gradients: one fused kernel computes all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from numgrad.base.halves import wide_dtype
from numgrad.base.tuning import FEW_ELEMENTS
from numgrad.codegen.define import define
from numgrad.codegen.expression import Symbol, literal
from numgrad.codegen.render import Formula
from numgrad.codegen.scalar_ops import SCALAR_OPS
from numgrad.graph.kinds import kind_for
from numgrad.graph.node import FREED
from numgrad.ops.calls.node_source import Saved
from numgrad.ops.calls.plain_calls import run_source
from numgrad.ops.calls.rule_programs import Gradients
from numgrad.ops.calls.table import Table
from numgrad.ops.core.elementwise.gradient_kernel import GradientKernel
from numgrad.ops.core.elementwise.spare import spare_of
from numgrad.ops.core.plan import Plan

__all__ = ["GradientPlan", "gradients_lie"]

Array = np.ndarray[Any, Any]

_BOOL = np.dtype(bool)


def _walks_otherwise(gradient: Array, saved: Any) -> bool:
    """Whether a loop over a gradient and what was saved is not one over rows.

    Where all elements of the gradient are one, as behind a sum, that is for the others to say.
    """
    return any(gradient.strides) or not all(
        value.flags.c_contiguous for value in saved[::3] if type(value) is np.ndarray
    )


def gradients_lie(primitive: Any, positions: Sequence[int]) -> Formula:
    """Return how the gradients of some operands lie, as `GradientKernel` wants to know it."""

    def lies(symbols: dict[str, Symbol]) -> list[Symbol]:
        found = []
        for position in positions:
            (rule, parameters), declared = primitive.goes_by(position)
            symbol = literal(rule(*[symbols[name] for name in parameters]))
            # Zeros are made like the cotangent, unless somebody says otherwise.
            if symbol.operation == "constant" and not declared:
                symbol = symbols["g"]
            found.append(symbol)
        return found

    return lies


def _computes_narrowly(results: Sequence[Symbol], dtypes: dict[str, Any], wide: Any) -> bool:
    """Whether some operation of formulas is one of nothing but numbers of other dtypes than `wide`.

    >>> g, x = Symbol.input("g", False), Symbol.input("x", False)
    >>> narrow, wide = np.dtype("float32"), np.dtype("float64")
    >>> _computes_narrowly([g * x], {"g": wide, "x": narrow}, wide)
    False
    >>> _computes_narrowly([g * (x - 1)], {"g": wide, "x": narrow}, wide)
    True
    """
    known: dict[Symbol, Any] = {}  # what takes part in promotion: numbers and truth values do not

    def narrow(symbol: Symbol) -> bool:
        if symbol in known:
            return False
        if symbol.operation == "input":
            known[symbol] = dtypes[symbol.arguments[0]]
            return False
        known[symbol] = None
        if symbol.operation == "constant":
            return False
        if any(narrow(each) for each in symbol.arguments):
            return True
        op = SCALAR_OPS[symbol.operation]
        if op.is_truth:
            return False
        taken = symbol.arguments[symbol.operation == "where" :]
        met = [known[each] for each in taken if known[each] is not None]
        if not met:
            return False
        known[symbol] = np.result_type(*met)
        return not op.keeps_value and known[symbol] != wide

    return any(narrow(each) for each in results)


class GradientPlan(Plan):
    """What to save and which kernel to run, for one choice of inputs that need a gradient.

    Where every input has the shape and the dtype of the output, it is all that nodes share, in the
    place of a `numgrad.ops.core.nodes.Call`.

    Attributes
    ----------
    sources : tuple of (bool or None)
        For each input whether the kernel computes its gradient; False if that is the cotangent
        itself, None if it gets none.
    owned : tuple of (bool or None)
        For each input whether its gradient is the receiver's to write to; see `Node.run_arrays`.
    programs : Table
        For how a gradient and what was saved lie, what computes the gradients: nodes whose `call`
        this is run it, and the programs of a `Call` do. Nodes of all shapes share a plan.
    laid : tuple of int
        The inputs whose gradients lie otherwise than their rules would have them.
    run : callable
        ``run(node, gradients)`` does what `Node.run_arrays` does for such a node.
    """

    __slots__ = (
        "closer",
        "closer_entries",
        "entries",
        "formula",
        "kernel",
        "kernel_outputs",
        "laid",
        "nothing",
        "owned",
        "pattern",
        "programs",
        "run",
        "sources",
    )

    shapes = output_metas = None  # nothing was broadcast or cast
    parameters: Any = MappingProxyType({})

    def __init__(self, primitive: Any, needs: int, kinds: str) -> None:
        super().__init__(primitive, needs, kinds)
        wanted = [position for position, *_ in self.rules]
        self.sources = tuple(
            (not primitive.is_identity(position)) if position in wanted else None
            for position in range(primitive.tensor_count)
        )
        # The only receiver of the cotangent itself may write to it if we might have.
        cotangent = None if len(wanted) == 1 else False
        self.owned = tuple(True if source else cotangent for source in self.sources)
        self.nothing = (None,) * len(self.sources), self.owned
        computed = [rule for rule in self.rules if self.sources[rule[0]]]
        self.kernel_outputs = len(computed)
        positions = [position for position, *_ in computed]
        title = f"{primitive.name}, gradient of {', '.join(primitive.inputs[p] for p in positions)}"
        lies = gradients_lie(primitive, positions)

        def formula(symbols: dict[str, Symbol]) -> list[Symbol]:
            return [
                literal(rule(*[symbols[name] for name in parameters]))
                for _, rule, parameters in computed
            ]

        self.laid = tuple(position for position in wanted if primitive.goes_by(position)[1])
        self.formula = formula
        self.kernel = GradientKernel(title, ["g", *self.names], formula, lies)
        letters = {"t": "a", "m": "b", "n": "s", "q": "p"}
        self.pattern = "a" + "".join(
            "a" if kind == "output" else letters[kinds[position]] for kind, position in self.saved
        )
        self.entries: dict[Any, Any] = {}  # of floating point dtypes, for few elements
        self.programs = Table()
        # What is computed with the operand that is kept beside the output, if there is such a rule.
        self.closer: GradientKernel | None = None
        self.closer_entries: dict[Any, Any] = {}
        if primitive.closer is not None and computed:
            rule, parameters = primitive.closer
            self.closer = GradientKernel(
                f"{title}, with the input",
                ["g", "y", "input"],
                lambda symbols: [literal(rule(*[symbols[name] for name in parameters]))],
                lies,
            )
        namespace = {
            "FREED": FREED,
            "FEW_ELEMENTS": FEW_ELEMENTS,
            "empty": np.empty,
            "closer_entries": self.closer_entries,
            "entries": self.entries,
            "nothing": self.nothing,
            "owned": self.owned,
            "plan": self,
            "walks_otherwise": _walks_otherwise,
        }
        name = f"{primitive.node_class.__name__}, operands {kinds}, gradients {needs:b}"
        first = self.kernel.deciding()
        numbers = [kind == "number" for kind, _ in self.saved]
        run = run_source(
            numbers,
            self.sources,
            spare=self.closer is not None,
            decide=[
                index
                for index, is_number in enumerate(numbers)
                if self.names[index] in first and not is_number
            ],
        )
        self.run = define("run", run, f"run of {name}", namespace)

    @property
    def saved_places(self) -> Saved:
        """What nodes save: what the rules name, and what `spare_of` finds behind it."""
        return self.saved if self.primitive.closer is None else (*self.saved, ("input", 0))

    @property
    def repeats(self) -> bool:
        """Whether what gives the gradients is the same for all nodes of one kind."""
        return self.closer is None

    @property
    def plan(self) -> GradientPlan:
        """Itself: of nodes that share nothing else."""
        return self

    def remember(self) -> None:
        """Do nothing: what it runs is made once, and looks at how its arrays lie."""

    def forgotten(self) -> GradientPlan:
        """Return itself."""
        return self

    def values(self, saved: Any) -> tuple[Any, ...]:
        """Return the arrays and numbers among what a node saved, without what stands behind."""
        found: tuple[Any, ...] = saved[: 3 * len(self.saved) : 3]
        return found

    def is_narrow(self, gradient: Array, saved: Any, wide: np.dtype[Any]) -> bool:
        """Whether rules on tensors compute something in another dtype than the kernel does.

        As those of atan2 of float32 and float64, which square each operand in its own. PyTorch
        does, too, and a trace: then the rules run on tensors, and all have the same bits.
        """
        arrays = {"g": gradient, **dict(zip(self.names, self.values(saved), strict=True))}
        dtypes = {
            name: each.dtype if type(each) is np.ndarray and each.dtype.kind != "b" else None
            for name, each in arrays.items()
        }
        if all(dtype is None or dtype == wide for dtype in dtypes.values()):
            return False
        symbols = {
            name: Symbol.input(name, dtype is not None and dtype.kind == "c")
            for name, dtype in dtypes.items()
        }
        return _computes_narrowly(self.formula(symbols), dtypes, wide)

    def kernel_with(self, saved: Any, dtype: np.dtype[Any]) -> tuple[GradientKernel, list[Array]]:
        """Return the kernel for what a node saved, and what it takes besides that."""
        if self.closer is not None and dtype.kind == "f":
            spare = spare_of(saved, len(self.saved))
            if spare is not None:
                return self.closer, [spare]
        return self.kernel, []

    def casts(self, operands: Sequence[Any], compute: np.dtype[Any]) -> list[np.dtype[Any]]:
        """Return what a kernel takes a gradient, what was saved, and what is beside that, in.

        That is the dtype of the computation, but for what is a truth value or has a gradient's own.
        """
        masks, count = self.primitive.masks, len(self.saved)
        found: list[np.dtype[Any]] = []
        for number, operand in enumerate(operands):
            is_array = type(operand) is np.ndarray
            kind, position = self.saved[number - 1] if 0 < number <= count else ("input", -1)
            if kind == "output" or number == 0 or (is_array and position in masks):
                found.append(operand.dtype)
            elif is_array:
                found.append(compute)
            else:  # which was rounded when it was saved
                found.append(_BOOL if position in masks else wide_dtype(compute))
        return found

    def function_for(
        self,
        kernel: GradientKernel,
        operands: Sequence[Any],
        compute: np.dtype[Any],
        result: np.dtype[Any],
        shapes: tuple[Any, ...] | None = None,
    ) -> Callable[..., list[Array]]:
        """Return what computes the gradients of operands that lie as these.

        Parameters
        ----------
        kernel : GradientKernel
            Which of the plan's two it is.
        operands : sequence of array or number
            What it takes: see `casts`.
        compute, result : numpy.dtype
            The dtype of the computation, and of the gradients before they are fitted.
        shapes : tuple, optional
            The shapes that these are summed to.
        """
        kinds = [kind_for(each) if type(each) is np.ndarray else type(each) for each in operands]
        key = (kernel is self.closer, compute, result, shapes, *kinds)
        found: Callable[..., list[Array]] | None = self.programs.get(key)
        if found is None:
            casts, outputs = self.casts(operands, compute), [result] * self.kernel_outputs
            made = kernel.function_for(operands[0].shape, operands, casts, outputs, shapes)
            found = self.programs.keep(key, made)
        return found

    def place(self, gradient: Array, arrays: Sequence[Array]) -> Gradients:
        """Return what the kernel computed, and the cotangent where that is a gradient itself."""
        computed = iter(arrays)
        return tuple(
            [
                None if source is None else next(computed) if source else gradient
                for source in self.sources
            ]
        ), self.owned
