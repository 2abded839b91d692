"""What has another name, or the same once more, in ``torch.special``: expit, logit, softmax, sinc.

Each computes and records what the function at top level does; its errors have its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.math.functions import FORMULAS, OTHER_NAMES
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.signatures.declared import DECLARED, declare

__all__ = ["ALIASES"]

_OF_ONE = "Tensor input, *, Tensor? out=None"
_OF_TWO = "Tensor input, Tensor other, *, Tensor? out=None"
_ALONG = "Tensor input, int dim, dtype? dtype=None"
# The name in ``special``; that of the function, and what stands between its parentheses.
_NAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "expit": ("sigmoid", (_OF_ONE,)),
    "exp2": ("exp2", (_OF_ONE,)),
    "expm1": ("expm1", (_OF_ONE,)),
    "erf": ("erf", (_OF_ONE,)),
    "erfc": ("erfc", (_OF_ONE,)),
    "erfinv": ("erfinv", (_OF_ONE,)),
    "log1p": ("log1p", (_OF_ONE,)),
    "i0": ("i0", (_OF_ONE,)),
    "sinc": ("sinc", (_OF_ONE,)),
    "gammaln": ("lgamma", (_OF_ONE,)),
    "digamma": ("digamma", (_OF_ONE,)),
    "psi": ("digamma", (_OF_ONE,)),
    "gammainc": ("igamma", (_OF_TWO,)),
    "gammaincc": ("igammac", (_OF_TWO,)),
    "logit": ("logit", ("Tensor input, float? eps=None, *, Tensor? out=None",)),
    "logsumexp": (
        "logsumexp",
        ("Tensor input, int[1] dim, bool keepdim=False, *, Tensor? out=None",),
    ),
    "softmax": ("softmax", (_ALONG,)),
    "log_softmax": ("log_softmax", (_ALONG,)),
    "xlogy": (
        "xlogy",
        (
            "Tensor input, Tensor other, *, Tensor? out=None",
            "number input, Tensor other, *, Tensor? out=None",
            "Tensor input, number other, *, Tensor? out=None",
        ),
    ),
}
ALIASES: dict[str, Callable[..., Any]] = {}


def _declare_alias(name: str, of: str, signatures: tuple[str, ...]) -> Callable[..., Any]:
    """Declare a function of ``special`` that computes what another one does."""
    found: Any = FUNCTIONS[of]
    rule: Any = DECLARED[found].rule
    own: Any = FunctionType(
        rule.__code__, rule.__globals__, f"special_{name}", rule.__defaults__, rule.__closure__
    )
    own.__module__, own.__annotations__, own.__doc__ = __name__, rule.__annotations__, rule.__doc__
    plain = getattr(found, "primitive", None)
    if name != of and of in FORMULAS:
        OTHER_NAMES[name] = of
    return declare(
        *[f"special_{name}({signature})" for signature in signatures],
        function=False,
        method=False,
        plain=plain,
        dispatched=DECLARED[found].calls is not None,
    )(own)


@declare(
    "special_round(Tensor input, *, int decimals=0, Tensor? out=None)", function=False, method=False
)
def special_round(input: Tensor, decimals: int, out: Tensor | None) -> Tensor:
    """Return the nearest number of so many decimals, the even one at ties: `numgrad.round`.

    Derivative: 0. Mirrors ``torch.special.round``, which records another node than ``torch.round``.

    >>> import numgrad as ng
    >>> ng.special.round(ng.tensor([0.5, 1.5, 2.25]))
    tensor([0., 2., 2.])
    """
    if decimals == 0:
        CATALOGUE["round"].check_dtype(input.dtype)
        result: Tensor = CATALOGUE["round_decimals"](input, 1.0, out=out)
        return result
    return FUNCTIONS["round"](input, decimals=decimals, out=out)


ALIASES["round"] = special_round
for _name, (_of, _signatures) in _NAMES.items():
    ALIASES[_name] = globals()[f"special_{_name}"] = _declare_alias(_name, _of, _signatures)
