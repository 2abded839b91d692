"""Greatest common divisors and least common multiples: gcd, lcm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.core.declare import binary
from numgrad.ops.core.domains import REAL
from numgrad.ops.signatures.declared import declare

__all__ = ["gcd", "lcm"]


def _declare(name: str, words: str, values: str) -> Callable[..., Any]:
    primitive = binary(
        name,
        (None, None),
        (REAL, REAL),
        accepts="iu",
        kernel_name=f"{name}_cpu",
        doc=f"Return the {words.partition(',')[0]} of integers.",
    )

    def rule(input: Tensor, other: Tensor, out: Tensor | None) -> Tensor:
        result: Tensor = primitive(input, other, out=out)
        return result

    rule.__name__ = rule.__qualname__ = name
    rule.__module__ = "numgrad"
    rule.__doc__ = f"""Return the {words}.

    What does not fit into the dtype wraps around. No gradient flows. Mirrors ``torch.{name}``.

    Parameters
    ----------
    input, other : tensor of integers
        They broadcast and promote.

    Raises
    ------
    NotImplementedError
        If they are not integers.

    >>> import numgrad as ng
    >>> ng.{name}(ng.tensor([12, 0, -4]), ng.tensor([18, 5, 6]))
    tensor([{values}])
    """
    text = f"{name}(Tensor input, Tensor other, *, Tensor? out=None)"
    return declare(text, inplace=True, dispatched=True)(rule)


gcd = _declare("gcd", "greatest common divisors of two tensors, 0 of two zeros", "6, 5, 2")
lcm = _declare("lcm", "least common multiples of two tensors, 0 where one is 0", "36,  0, 12")
