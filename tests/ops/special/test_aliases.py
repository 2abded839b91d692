"""Functions of ``special`` that are others by another name: results, nodes and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.ops.special.aliases import ALIASES

CALLS: dict[str, tuple[str, ...]] = {
    "expit": ("(x)", "(x, out=o)", "()", "('a')", "(x, x)", "(n)", "(c)"),
    "exp2": ("(x)", "(1)", "(n)"),
    "expm1": ("(x)", "(n)"),
    "erf": ("(x)", "(c)"),
    "erfc": ("(x)", "(c)"),
    "erfinv": ("(x)", "(n)"),
    "log1p": ("(x)", "(input=x)"),
    "gammaln": ("(x)", "(n)", "(c)", "(1.0)"),
    "digamma": ("(x)", "(n)", "(c)"),
    "psi": ("(x)", "(n)", "(x, out=o)"),
    "gammainc": ("(x.detach(), x)", "(n, n)", "(c, x)", "(x, 1.0)"),
    "gammaincc": ("(x.detach(), x)", "(n, x.detach())", "(1.0, x)"),
    "sinc": ("(x)", "(n)"),
    "i0": ("(x)", "(n)", "(c)", "(x, out=o)"),
    "logit": ("(x)", "(x, 0.1)", "(x, eps=0.3)", "(x, 'a')"),
    "logsumexp": ("(x, 0)", "(x, (0,), True)", "(x, dim=0, keepdim=True)", "(x)", "(x, 3)"),
    "softmax": ("(x, 0)", "(x, 0, torch.float64)", "(x, dim=0)", "(x)", "(n, 0)"),
    "log_softmax": ("(x, 0)", "(x, 0, dtype=torch.float64)", "(x, 1)", "(x, 0, out=o)"),
    "round": ("(x)", "(x, decimals=1)", "(n)", "(x, 1)", "(c)"),
    "xlogy": ("(x, x)", "(x, 2.0)", "(2.0, x)", "(1, 1)", "(x)", "(c, x)"),
}


def test_every_alias_is_tried() -> None:
    assert CALLS.keys() == ALIASES.keys()
    assert all(getattr(ng.special, name) is function for name, function in ALIASES.items())


def outcome(library: Any, call: str) -> Any:
    x = library.tensor([0.25, 0.75], requires_grad=True)
    names = {"x": x, "n": library.tensor([1, 2]), "c": library.tensor([1.0 + 1.0j])}
    names |= {"o": library.empty(2), "torch": library}
    try:
        y = eval(f"torch.special.{call}", names)
    except (RuntimeError, TypeError, IndexError, NotImplementedError) as error:
        return type(error).__name__, str(error).partition(" but expected one of")[0]
    gradient = None
    if y.requires_grad:
        y.sum().backward()
        gradient = x.grad.tolist()
    node = None if y.grad_fn is None else y.grad_fn.name()
    return str(y.dtype), y.tolist(), node, gradient


@pytest.mark.parametrize("name", CALLS)
def test_results_nodes_and_errors_are_pytorchs(torch: Any, name: str) -> None:
    for arguments in CALLS[name]:
        ours, theirs = (outcome(library, name + arguments) for library in (ng, torch))
        assert ours[0] == theirs[0]
        if len(theirs) == 2:
            assert ours == theirs
        else:
            assert ours[2] == theirs[2]
            for mine, other in zip(ours[1::2], theirs[1::2], strict=True):
                if other is None:
                    assert mine is None
                else:
                    np.testing.assert_allclose(mine, other, rtol=1e-6)
