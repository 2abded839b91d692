"""How derivatives lie in memory: as PyTorch's, and in a traced function as in eager mode.

Their strides decide what a later write to them changes. Every transformation is made of functions
whose gradients lie in different ways, at tensors of drawn layouts.
"""

from __future__ import annotations

import warnings
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

import numgrad as ng
from numgrad.base.pytree import flatten
from tests.jit.test_layouts import traced_strides
from tests.ops.layouts import LAYOUTS, Layout, operands

DRAWS = 2 if settings.default.max_examples <= 100 else len(LAYOUTS)
DENSE = [LAYOUTS[name] for name in ("contiguous", "reversed dims", "last two exchanged")]
SHAPE = (2, 3, 4)

SCALARS = """
(x * x * x).sum()
(x.transpose(0, 1) * 2).sum()
(x @ x.transpose(-1, -2)).sum()
(x.reshape(-1) ** 3).sum()
"""
TENSORS = """
x**3
x.sin()
(x * x).transpose(0, 1)
x.transpose(0, 1)
x
x.clone()
x[..., 1:] * 2
x.sum(0)
x.softmax(1)
x.unsqueeze(0).expand(2, 2, 3, 4)
x @ x.transpose(-1, -2)
(x * 2, x.transpose(0, 1).exp())
torch.cat([x, x], 1)
x.flip(0)
torch.ones(2, 3)
"""
# A transformation of `f` at `x`, in the direction `y`; `like` makes cotangents of results.
OF_SCALARS = """
func.grad(f)(x)
func.grad_and_value(f)(x)
functional.vhp(f, x, y)
functional.hvp(f, x, y)
functional.hessian(f, x)
"""
OF_ALL = """
func.jvp(f, (x,), (y,))
func.vjp(f, x)[1](like(f(x)))
func.linearize(f, x)[1](y)
func.jacrev(f)(x)
func.jacfwd(f)(x)
func.hessian(f)(x)
functional.vjp(f, x, like(f(x)))
functional.jvp(f, x, y)
functional.jacobian(f, x)
functional.jacobian(f, x, vectorize=True)
functional.jacobian(f, x, vectorize=True, strategy="forward-mode")
functional.jacobian(f, x, create_graph=True)
autograd.grad(f(leaf), leaf, like(f(x)))
autograd.grad(f(leaf), leaf, like(f(x)), create_graph=True)
dual(f)
"""
# In PyTorch rows of all outputs are computed side by side, and lie as their sum does.
TOGETHER = "(x * 2, x.transpose(0, 1).exp())"
DIFFERENT = {
    ("func.jacrev(f)(x)", TOGETHER),
    ("func.hessian(f)(x)", TOGETHER),
    ("functional.jacobian(f, x, vectorize=True)", TOGETHER),
    # Zeros, which here take no memory.
    ("functional.jacobian(f, x, create_graph=True)", "torch.ones(2, 3)"),
}


def lines(text: str) -> list[str]:
    return text.strip().split("\n")


CASES = [
    *[(t, f) for t in lines(OF_SCALARS) for f in lines(SCALARS)],
    *[(t, f) for t in lines(OF_ALL) for f in lines(SCALARS) + lines(TENSORS)],
]


def derivative(library: Any, transformation: str, function: str, x: Any, y: Any) -> list[Any]:
    """Return the tensors that a transformation of a function gives."""

    def f(x: Any) -> Any:
        return eval(function, {"x": x, "torch": library})

    def like(results: Any) -> Any:
        if isinstance(results, tuple):
            return tuple(each.clone() for each in results)
        return results.clone()

    def dual(f: Any) -> list[Any]:
        forward = library.autograd.forward_ad
        with forward.dual_level():
            results = f(forward.make_dual(x, y))
            results = results if isinstance(results, tuple) else (results,)
            return [forward.unpack_dual(each).tangent for each in results]

    names = {
        "f": f,
        "x": x,
        "y": y,
        "leaf": x.detach().requires_grad_(),
        "like": like,
        "dual": dual,
        "func": library.func,
        "functional": library.autograd.functional,
        "autograd": library.autograd,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = flatten(eval(transformation, names))[0]
    return [each for each in found if hasattr(each, "stride")]


def outcome(library: Any, transformation: str, function: str, first: Layout, second: Layout) -> Any:
    """Return how derivatives lie, or None if the call is refused."""
    made = operands(library, first, second, SHAPE)
    try:
        found = derivative(library, transformation, function, made["x"], made["y"])
    except (RuntimeError, TypeError, IndexError):
        return None
    # What has no second element has strides that lead nowhere.
    return [
        [step for step, n in zip(each.stride(), each.shape, strict=True) if n > 1] for each in found
    ]


def drawn(transformation: str, function: str) -> list[tuple[Layout, Layout]]:
    """Return layouts of a tensor and of a direction.

    In `functional.jvp`, by two backward passes in PyTorch, results lie as the direction; here they
    lie as the output does, as in forward mode. `linearize` is traced there, which drops gaps.
    """
    random = Random(transformation + function)
    if "jvp(f, x" in transformation or "hvp" in transformation:
        return [(layout, layout) for layout in random.sample(DENSE, 2)]
    dense = "fwd" in transformation or "forward" in transformation or "linear" in transformation
    known = DENSE if dense else [layout for name, layout in LAYOUTS.items() if "exp" not in name]
    return [(random.choice(known), random.choice(DENSE)) for _ in range(DRAWS)]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize(("transformation", "function"), CASES)
def test_derivatives_lie_as_in_pytorch(
    torch: ModuleType, transformation: str, function: str
) -> None:
    for first, second in drawn(transformation, function):
        theirs = outcome(torch, transformation, function, first, second)
        ours = outcome(ng, transformation, function, first, second)
        if (transformation, function) not in DIFFERENT and theirs is not None:
            assert ours == theirs, (first, second)


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize(
    ("transformation", "function"), [case for case in CASES if "dual" not in case[0]]
)
def test_derivatives_in_a_traced_function_lie_as_in_eager_mode(
    transformation: str, function: str
) -> None:
    def traced(x: Any, y: Any) -> list[Any]:
        return derivative(ng, transformation, function, x, y)

    for first, second in drawn(transformation, function):
        expected = outcome(ng, transformation, function, first, second)
        if expected is None:
            continue
        made = operands(ng, first, second, SHAPE)
        assert traced_strides(traced, [made["x"], made["y"]])[0] == expected, (first, second)


@pytest.mark.parametrize("transformation", ["func.jvp(f, (x,), (y,))", "func.grad(f)(x)"])
def test_a_flat_write_to_a_derivative_reaches_what_it_does_in_pytorch(
    torch: ModuleType, transformation: str
) -> None:
    function = lines(SCALARS)[0] if "grad" in transformation else "x.sin()"
    for layout in DENSE:
        after = []
        for library in (torch, ng):
            made = operands(library, layout, layout, SHAPE)
            derived = derivative(library, transformation, function, made["x"], made["y"])[-1]
            derived.reshape(-1)[:3] = 0
            after.append([derived.stride(), (derived == 0).tolist()])
        assert after[0] == after[1]
