"""Where the gradients of every public operation lie in memory, against PyTorch.

A gradient that `autograd.grad` gives lies as the rule's operations laid it out, and what a later
write to it or to a view of it changes goes by that. Layouts of operands and of the cotangent are
drawn, for each line that `layout_calls` has for a function or method.
"""

from __future__ import annotations

import warnings
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

import numgrad as ng
from tests.cases import thinned
from tests.ops.layout_calls import CALLS
from tests.ops.layouts import LAYOUTS, Layout, operands
from tests.ops.test_strides import REFUSED, drawn_layout, drawn_shape
from tests.rows import rows_of

# Lines whose gradients lie otherwise than PyTorch's, and why; docs/if-you-know-pytorch.md has the
# reasons, too. A line here that comes to agree in all the layouts of `LAYOUTS` fails.
DIFFERENT = {
    "torch.conj(c)": "new memory, where PyTorch has a view with a bit that says conjugate",
    "torch.einsum('ij,jk->ki', m, s)": "permuted in another order, as its result",
    "torch.as_strided(x, (2, 2), (1, 2))": "of an expanded operand all elements, not the one",
    "torch.as_strided_copy(x, (2, 2), (1, 2))": "as above",
    **rows_of("DIFFERENT_GRADIENTS"),
}
# Layouts and shapes for each line.
DRAWS = 4 if settings.default.max_examples <= 100 else 100
# How a cotangent lies: one number for all, as the result, row by row, the other way round.
COTANGENTS = ("expanded", "like", "rows", "reversed")

NAMES = [name for name in CALLS if not name.endswith("_") or name.startswith("__")]


def cotangent(library: Any, result: Any, kind: str) -> Any:
    """Return a cotangent of a result."""
    if kind == "like":
        return library.ones_like(result)
    if kind == "rows":
        return library.ones(result.shape, dtype=result.dtype)
    if kind == "expanded":
        return library.ones((), dtype=result.dtype).expand(result.shape)
    back = tuple(range(result.ndim))[::-1]
    return library.ones(result.shape[::-1], dtype=result.dtype).permute(back)


def gradients(library: Any, line: str, names: dict[str, Any], kind: str) -> list[Any]:
    """Return the gradients of all that can have one."""
    leaves = [
        tensor.requires_grad_()
        for tensor in names.values()
        if tensor.dtype.is_floating_point or tensor.dtype.is_complex
    ]
    found = eval(line, {"torch": library, **names})
    results = [
        result
        for result in (found if isinstance(found, (tuple, list)) else [found])
        if hasattr(result, "stride") and result.requires_grad
    ]
    cotangents = [cotangent(library, result, kind) for result in results]
    return list(library.autograd.grad(results, leaves, cotangents, allow_unused=True))


def steps(tensor: Any) -> list[int] | None:
    """Return the strides that lead from one element to another."""
    if tensor is None or not tensor.numel():
        return None
    return [step for step, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]


def outcome(
    library: Any, line: str, first: Layout, second: Layout, shape: Any, kind: str
) -> tuple[Any, str]:
    """Return how gradients lie, or the words of the error."""
    names = operands(library, first, second, shape, line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return [steps(each) for each in gradients(library, line, names, kind)], ""
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"


def lines_of(name: str) -> list[str]:
    """Return the calls of a name, without those that write to ``out``."""
    return [line for line in CALLS[name] if "out=" not in line]


@pytest.mark.sampled(0.11)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_lie_as_in_pytorch(torch: ModuleType, name: str) -> None:
    random = Random(f"gradients of {name}")
    for line in lines_of(name):
        for _ in range(DRAWS):
            first, shape = drawn_layout(random), drawn_shape(random)
            second = first if random.random() < 0.5 else drawn_layout(random)
            kind = random.choice(COTANGENTS)
            if line in DIFFERENT:
                continue
            theirs, refused = outcome(torch, line, first, second, shape, kind)
            if refused:
                continue
            ours, error = outcome(ng, line, first, second, shape, kind)
            if not any(words in error for words in REFUSED):
                assert (ours, error) == (theirs, ""), (line, first, second, shape, kind)


@pytest.mark.parametrize("line", DIFFERENT)
def test_what_differs_still_does(torch: ModuleType, line: str) -> None:
    assert any(line in lines for lines in CALLS.values())
    assert not all(
        outcome(ng, line, layout, layout, (2, 3, 4), kind)
        == outcome(torch, line, layout, layout, (2, 3, 4), kind)
        for layout in LAYOUTS.values()
        for kind in COTANGENTS
    )


def test_most_lines_have_a_gradient() -> None:
    """What can be differentiated is compared, and does not fail for a reason of the test's."""
    plain, names = Layout(), thinned(NAMES, 6)
    made = {
        name
        for name in names
        for line in lines_of(name)
        if outcome(ng, line, plain, plain, (2, 3, 4), "like")[0]
    }
    assert len(made) > 0.6 * len(names)


# A mean's gradient is one number for all, until it comes to a leaf.
@pytest.mark.parametrize("line", ["x.mean()", "x.mean(1)", "x.mean(0, keepdim=True)"])
def test_the_gradient_of_a_mean_is_whole_at_a_leaf_only(torch: ModuleType, line: str) -> None:
    for library, whole in ((torch, True), (ng, False)):
        x = library.ones(2, 3, 4).permute(2, 0, 1).requires_grad_()
        between = x * 2
        for at, is_whole in ((x, True), (between, whole)):
            mean = eval(line, {"x": at})
            (found,) = library.autograd.grad(mean.sum(), at)
            assert (0 not in found.stride()) is is_whole


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "line", ["x @ w", "torch.addmm(b, x, w)", "torch.matmul(q, w)", "torch.inner(x, w.T)"]
)
def test_a_flat_write_to_a_gradient_reaches_what_it_does_in_pytorch(
    torch: ModuleType, line: str, create_graph: bool
) -> None:
    for permuted in ("x", "w", "xw"):
        after = []
        for library in (torch, ng):
            names = {
                "x": library.ones(2, 3),
                "w": library.ones(3, 4),
                "q": library.ones(5, 2, 3),
                "b": library.ones(4),
            }
            for name in permuted:
                names[name] = names[name].T.clone().T
            leaves = [each.requires_grad_() for each in names.values()]
            result = eval(line, {"torch": library, **names}).sum()
            found = library.autograd.grad(
                result, leaves, allow_unused=True, create_graph=create_graph
            )
            for each in found:
                if each is not None:
                    with library.no_grad():
                        each.reshape(-1)[:3] = 0
            after.append([None if each is None else each.tolist() for each in found])
        assert after[0] == after[1]
