"""Where the results of every public operation lie in memory, against PyTorch.

Strides decide what `flatten` or `view` of a result is, and so what a later write to that changes.
Layouts are drawn: for each line that `layout_calls` has for a function or method, how its operands
lie, and their shape.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.graph.backward.accumulate import OVERLAPS_ITSELF
from tests.ops.layout_calls import CALLS
from tests.ops.layouts import LAYOUTS, Layout, layouts, operands
from tests.rows import rows_of

# Lines whose results differ from PyTorch's, and why; docs/if-you-know-pytorch.md has the reasons,
# too. A line here that comes to agree in all the layouts of `LAYOUTS` fails.
DIFFERENT = {
    "torch.conj(c)": "new memory, where PyTorch has a view with a bit that says conjugate",
    "torch.einsum('ij,jk->ki', m, s)": "the product's operands have the other order, then viewed",
    "torch.stack([x, y], out=torch.empty(0))": "laid out as without `out`: channels last",
    "torch.stack([x, y], 3, out=torch.empty(0))": "as above",
    "torch.normal(x, 1.0, out=torch.empty(0))": "PyTorch gives `out` a shape that depends on x",
    **rows_of("DIFFERENT"),
}
# What PyTorch does without and what we refuse, of every line.
REFUSED = {
    OVERLAPS_ITSELF: "PyTorch lets some methods write where elements share memory",
    "setStorage": "the memory of a base ends where its elements do",
    "not implemented for": "PyTorch says so only where there are elements",
    "dtype must be a floating": "as above",
    "out of bounds for dimension": "as above",
    "Expected reduction dim": "PyTorch leaves `out` as it was if there are no elements",
    **rows_of("REFUSED"),
}
# Layouts and shapes for each line.
DRAWS = 3 if settings.default.max_examples <= 100 else 100


def memory_of(tensor: Any) -> Any:
    """Return where the memory starts that a tensor lies in."""
    return tensor.untyped_storage().data_ptr()


def described(result: Any, names: dict[str, Any]) -> Any:
    """Return what can be seen of where a result lies, as something that compares.

    Strides count in dims of length 1, too, but not where there are no elements.
    """
    if isinstance(result, (tuple, list)) and not hasattr(result, "stride"):
        return [described(each, names) for each in result]
    if not hasattr(result, "stride"):
        return type(result).__name__
    is_view = result._base is not None
    steps = result.stride() if result.numel() else None
    return {
        "shape": tuple(result.shape),
        "dtype": str(result.dtype),
        "strides": steps,
        "contiguous": result.is_contiguous(),
        "is": [name for name, operand in names.items() if result is operand],
        "view": is_view,
        "shares": [
            name
            for name, operand in names.items()
            if result.numel() and operand.numel() and memory_of(result) == memory_of(operand)
        ],
        "offset": result.storage_offset() if is_view and result.numel() else None,
    }


def run(
    library: Any, line: str, first: Layout, second: Layout, shape: tuple[int, ...]
) -> tuple[Any, str]:
    """Return a description of what a line returns, or the words of the error."""
    names = operands(library, first, second, shape, line)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(line, {"torch": library, **names})
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
    return described(result, names), ""


def agree(torch: ModuleType, line: str, first: Layout, second: Layout, shape: Any) -> bool:
    """Return whether a call gives what it does in PyTorch; what that refuses does not count."""
    theirs, refused = run(torch, line, first, second, shape)
    if refused:
        return True
    ours, error = run(ng, line, first, second, shape)
    return ours == theirs or any(words in error for words in REFUSED)


def drawn_layout(random: Random) -> Layout:
    """Return a layout, every other one of the table."""
    if random.random() < 0.5:
        return random.choice(list(LAYOUTS.values()))
    order = tuple(random.sample(range(4), 4))
    expanded = frozenset(random.sample(range(4), random.choice([0, 0, 1, 2])))
    return Layout(order, random.choice([1, 1, 2]), random.choice([0, 0, 1]), expanded)


def drawn_shape(random: Random) -> tuple[int, ...]:
    """Return a shape of three or four dims, some of length 0 or 1."""
    if random.random() < 0.6:
        return random.choice([(2, 3, 4), (2, 3, 4, 2)])
    lengths, ndim = random.choice([([0, 1, 2, 3], 3), ([1, 2, 3], 4)])
    return tuple(random.choices(lengths, k=ndim))


def check_as_in_pytorch(
    torch: ModuleType, line: str, first: Layout, second: Layout, shape: tuple[int, ...]
) -> None:
    """Assert that a call gives what it does in PyTorch, unless one of the two refuses it."""
    theirs, refused = run(torch, line, first, second, shape)
    if refused:
        return
    ours, error = run(ng, line, first, second, shape)
    if not any(words in error for words in REFUSED):
        assert (ours, error) == (theirs, ""), (line, first, second, shape)


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("name", CALLS)
def test_results_lie_as_in_pytorch(torch: ModuleType, name: str) -> None:
    random = Random(name)
    for line in CALLS[name]:
        if line in DIFFERENT:
            continue
        for _ in range(DRAWS):
            first, shape = drawn_layout(random), drawn_shape(random)
            second = first if random.random() < 0.5 else drawn_layout(random)
            check_as_in_pytorch(torch, line, first, second, shape)


@pytest.mark.parametrize("line", DIFFERENT)
def test_what_differs_still_does(torch: ModuleType, line: str) -> None:
    assert any(line in lines for lines in CALLS.values())
    assert not all(
        agree(torch, line, layout, layout, shape)
        for layout in LAYOUTS.values()
        for shape in ((2, 3, 4), (2, 1, 3), (2, 3, 1, 1), (2, 3, 4, 2))
    )


def test_every_line_is_a_call_somewhere(torch: ModuleType) -> None:
    """A misspelt line would be refused by PyTorch in every layout, and compare nothing."""
    plain = Layout()
    dead = {
        name
        for name, lines in CALLS.items()
        if all(run(torch, line, plain, plain, (2, 3, 4))[1] for line in lines)
    }
    assert dead == {"float_power_"}  # which needs float64


def test_strides_of_empty_tensors_are_those_of_rows(torch: ModuleType) -> None:
    random = Random(3)
    for _ in range(40):
        shape = random.choices([0, 1, 2, 3], k=random.randint(1, 4))
        shape[random.randrange(len(shape))] = 0
        for line in ("torch.zeros(*s)", "z.clone()", "z.contiguous()", "torch.full(s, 2)"):
            found = []
            for library in (torch, ng):
                names = {"torch": library, "s": shape, "z": library.zeros(*shape)}
                found.append(eval(line, names).stride())
            assert found[0] == found[1], (line, shape)


@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2)])
def test_one_stride_or_length_is_asked_for_by_a_dim(
    torch: ModuleType, shape: tuple[int, ...]
) -> None:
    for name in ("size", "stride"):
        for dim in (0, 1, -1, -2, 2, -3, True, 1.0, "a"):
            found = []
            for library in (torch, ng):
                try:
                    found.append(getattr(library.zeros(shape), name)(dim))
                except (IndexError, TypeError) as error:
                    found.append((type(error).__name__, str(error).partition("\n")[0]))
            assert found[0] == found[1], (name, dim)


# --- gradients -----------------------------------------------------------------------------------


def gradients(library: Any, first: Layout, second: Layout, shape: Any) -> Iterator[Any]:
    """Yield the strides of gradients that leaves of two layouts accumulate, once and twice."""
    names = operands(library, first, second, shape)
    leaves = [names[name].detach().requires_grad_() for name in "xy"]
    for again in (False, True):
        total = (leaves[0] * leaves[1].transpose(0, 1).transpose(0, 1)).sum()
        total.backward(create_graph=again)
        for leaf in leaves:
            yield leaf.grad.stride(), leaf.grad.is_contiguous()


@given(first=layouts, second=layouts, shape=st.sampled_from([(2, 3, 4), (2, 3, 4, 2)]))
def test_gradients_of_leaves_lie_as_in_pytorch(
    torch: ModuleType, first: Layout, second: Layout, shape: Any
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = list(gradients(torch, first, second, shape))
    assert list(gradients(ng, first, second, shape)) == theirs


# --- what a write tells --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line", ["x.roll(-3, 0)", "x.flip(0)", "x[i]", "x.sort(1)[0]", "x.clone()"]
)
@given(layout=layouts)
def test_a_write_to_a_flattened_result_reaches_what_it_does_in_pytorch(
    torch: ModuleType, line: str, layout: Layout
) -> None:
    after = []
    for library in (torch, ng):
        result = eval(line, operands(library, layout, line=line))
        result.flatten()[:1].add_(1)
        after.append(result.tolist())
    assert after[0] == after[1]


@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("name", [name for name in CALLS if name != "requires_grad_"])  # leaves
def test_an_empty_result_can_be_written_to(name: str) -> None:
    for line in CALLS[name]:
        for shape in ((0, 3, 4), (2, 0, 4), (2, 3, 0)):
            names = operands(ng, LAYOUTS["reversed dims"], None, shape, line)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    result = eval(line, {"torch": ng, **names})
                except (RuntimeError, IndexError, TypeError, ValueError):
                    continue
            for each in result if isinstance(result, (tuple, list)) else [result]:
                if isinstance(each, ng.Tensor) and not each.numel():
                    assert each.fill_(1) is each
                    assert each.zero_().copy_(each.clone()) is each
