"""Sums of products of three and more float64 tensors by `einsum`, forwards and backwards.

`compare.py` puts the same cases beside PyTorch and NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import numgrad as ng

# An equation, and the length of each label's dim.
EQUATIONS: dict[str, tuple[str, dict[str, int]]] = {
    "chain": ("ij,jk,kl->il", dict.fromkeys("ijkl", 40)),
    "chain, ends first": ("ij,kl,jk->il", dict.fromkeys("ijkl", 20)),
    "quadratic form": ("bi,ij,bj->b", {"b": 64, "i": 32, "j": 32}),
    "attention": ("bhid,bhjd,bhje->bhie", {"b": 2, "h": 2, "i": 32, "j": 32, "d": 16, "e": 16}),
    "change of basis": ("pi,qj,rk,sl,ijkl->pqrs", dict.fromkeys("ijklpqrs", 8)),
}


def gradient(equation: str, operands: list[Any], library: Any) -> Any:
    """Return the gradients of the sum of an einsum with respect to all operands."""
    return library.autograd.grad(library.einsum(equation, *operands).sum(), operands)


class Case:
    """An einsum, perhaps with its gradients, in numgrad's, PyTorch's and NumPy's spelling."""

    def __init__(self, name: str, grad: bool) -> None:
        self.equation, self.lengths = EQUATIONS[name]
        self.grad = grad
        self.numpy = None if grad else self._numpy

    def operands(self, library: Any) -> Any:
        """Return the library, and what it sums products of: leaves in a case with gradients."""
        random = np.random.default_rng(0)
        terms = self.equation.partition("->")[0].split(",")
        arrays = [random.standard_normal([self.lengths[label] for label in t]) for t in terms]
        if library is np:
            return library, arrays
        return library, [library.from_numpy(a).requires_grad_(self.grad) for a in arrays]

    def run(self, given: Any) -> Any:
        """Run a case on what `operands` returned."""
        library, operands = given
        if self.grad:
            return gradient(self.equation, operands, library)
        return library.einsum(self.equation, *operands)

    def _numpy(self, given: Any) -> Any:
        return np.einsum(self.equation, *given[1], optimize=True)


CASES = {f"einsum, {name}": Case(name, False) for name in EQUATIONS} | {
    f"einsum, {name}, with gradients": Case(name, True) for name in EQUATIONS
}


class Einsum:
    """Every case."""

    params = tuple(CASES)
    param_names = ("case",)
    warmup_time = 0.2

    def setup(self, case: str) -> None:
        self.case = CASES[case]
        self.given = self.case.operands(ng)

    def time(self, case: str) -> None:
        self.case.run(self.given)
