"""Operations of two operands, either of which may be a number: a primitive for each form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.kernels.move.loop_order import beside_number
from numgrad.ops.core.declare import elementwise
from numgrad.ops.core.domains import Domain, number
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.plan import Rule

__all__ = ["NumberForms", "number_forms"]


@dataclass(frozen=True)
class NumberForms:
    """One operation as three primitives: of two tensors, of a number first, and of one behind."""

    of_tensors: ElementwisePrimitive
    of_number: ElementwisePrimitive
    by_number: ElementwisePrimitive

    def __call__(self, input: Any, other: Any, out: Tensor | None) -> Tensor:
        """Apply that which is for such operands, one of which is a tensor."""
        if not isinstance(input, Tensor):
            result: Tensor = self.of_number(other, input, out=out)
            return result
        primitive = self.of_tensors if isinstance(other, Tensor) else self.by_number
        result = primitive(input, other, out=out)
        return result


def number_forms(
    name: str,
    node: str,
    formula: Any,
    rules: tuple[Rule, Rule],
    domains: tuple[Domain, Domain],
    numbers: Sequence[float],
    *,
    by_number: Rule | None = None,
    gradients_lie: dict[str, Any] | None = None,
    **options: Any,
) -> NumberForms:
    """Declare an operation of ``input`` and ``other`` in its three forms, of floating point dtypes.

    Parameters
    ----------
    name, node : str
        The node's name without its number, by which PyTorch tells the forms apart.
    formula : callable
    rules : tuple of two functions
    domains : tuple of two Domain
    numbers : tuple of two floats
        What tests have in the place of each tensor.
    by_number : function, optional
        The rule for `input` where `other` is a number, if it is another.
    gradients_lie : dict, optional
        As `ElementwisePrimitive` takes it, where `input` is a tensor.
    **options
        What all three are declared with.
    """
    options = {"formula": formula, "kind": "float", "accepts": "f", "wide": (), **options}
    lie = {"gradients_lie": gradients_lie or {}}
    first, second = domains
    return NumberForms(
        elementwise(name, ("input", "other"), rules, domains, node=f"{node}0", **lie, **options),
        elementwise(
            f"{name}_of_number",
            ("other", "input"),  # numbers stand last
            (rules[1], None),
            (second, number(numbers[0])),
            node=f"{node}1",
            numbers=("input",),
            deciding=beside_number,
            **{**options, "formula": lambda other, input: formula(input, other)},
        ),
        elementwise(
            f"{name}_by_number",
            ("input", "other"),
            (by_number or rules[0], None),
            (first, number(numbers[1])),
            node=f"{node}2",
            numbers=("other",),
            deciding=beside_number,
            **lie,
            **options,
        ),
    )
