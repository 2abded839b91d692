"""scatter_reduce and index_reduce beside PyTorch: dtypes, ties, zeros, nan, wrong arguments."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from tests.cases import examples

MODES = ("sum", "prod", "mean", "amax", "amin")
DTYPES = (
    *("float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool", "complex64"),
)


def outcome(m: Any, call: Any) -> Any:
    """Return what a call comes to: numbers, dtype and strides; or its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns once in a process
            found = call(m)
    except (RuntimeError, TypeError, IndexError, NotImplementedError) as error:
        return type(error).__name__, str(error).splitlines()[0]
    return str(found.dtype), found.stride(), repr(found.tolist())


def operands(m: Any, case: dict[str, Any], dtype: str) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(case["seed"])
    base = m.from_numpy(random.integers(-3, 5, (3, 4)).astype(dtype))
    if case["transposed"]:
        base = base.t().contiguous().t()
    source = m.from_numpy(random.integers(-3, 5, (3, 4)).astype(dtype))
    shape = (2, 3) if case["part"] else (3, 4)
    index = random.integers(0, 3 if case["dim"] in (0, -2) else 4, shape)
    return base, source, m.from_numpy(index)


CASES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 99),
        "transposed": st.booleans(),
        "part": st.booleans(),
        "dim": st.sampled_from([0, 1, -1, -2]),
        "include_self": st.booleans(),
        "form": st.sampled_from(["plain", "in place", "out"]),
    }
)


def called(m: Any, name: str, case: dict[str, Any], mode: str, dtype: str) -> Any:
    base, source, index = operands(m, case, dtype)
    keywords = {"include_self": case["include_self"]}
    if name == "index_reduce":
        size = source.shape[case["dim"]]
        index = index.reshape(-1)[:size] if not case["part"] else index[0, :1].repeat(size)
    arguments = (case["dim"], index, source, mode)
    if case["form"] == "in place":
        return getattr(base, f"{name}_")(*arguments, **keywords)
    if case["form"] == "out":
        keywords["out"] = m.empty(0, dtype=base.dtype)
    return getattr(m, name)(base, *arguments, **keywords)


@settings(max_examples=examples(12), deadline=None)
@given(CASES)
def test_elements_are_combined_as_pytorch_combines_them(torch: Any, case: dict[str, Any]) -> None:
    for name, mode, dtype in itertools.product(("scatter_reduce", "index_reduce"), MODES, DTYPES):
        ours, theirs = (
            outcome(m, lambda m: called(m, name, case, mode, dtype)) for m in (ng, torch)
        )
        assert ours == theirs, (name, mode, dtype)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_pytorchs_at_ties_and_zeros(
    torch: Any, mode: str, include_self: bool
) -> None:
    """Where the input is not included, PyTorch shares with it nonetheless, where it is equal."""
    index = np.array([[0, 0, 1, 0], [2, 1, 1, 1], [0, 2, 2, 2]])
    sources = (
        [[1, 2, 3, 2], [0, 5, 0, 5], [4, 0, 0, 1]],
        [[3, 3, 3, 3], [1, 1, 1, 1], [2, 4, 2, 4]],
    )
    bases = [[2, 5, 1, 9], [9, 0, 7, 9], [0, 0, 9, 4]] if include_self else np.full((3, 4), 9)
    for rows, name in itertools.product(sources, ("scatter_reduce", "index_reduce")):
        if name == "index_reduce" and mode == "sum":
            continue
        found = []
        for m in (ng, torch):
            base = m.tensor(bases, dtype=m.float64, requires_grad=True)
            source = m.tensor(rows, dtype=m.float64, requires_grad=True)
            at = m.from_numpy(index if name == "scatter_reduce" else np.array([0, 2, 0, 0]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = getattr(base, name)(1, at, source, mode, include_self=include_self)
            weights = m.arange(1.0, 13.0, dtype=m.float64).reshape(3, 4)
            found.append([g.numpy() for g in m.autograd.grad((y * weights).sum(), (base, source))])
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-14)


@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
def test_what_is_not_included_has_no_share(name: str) -> None:
    x = ng.tensor([3.0, 4.0], requires_grad=True)
    source = ng.tensor([3.0, 3.0, 4.0], requires_grad=True)
    y = getattr(x, name)(0, ng.tensor([0, 0, 1]), source, "amax", include_self=False)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]
    assert source.grad.tolist() == [0.5, 0.5, 1.0]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
def test_second_derivatives_of_products_of_several_zeros_are_refused(
    torch: Any, name: str, traced: bool
) -> None:
    def slopes(m: Any, source: Any) -> Any:
        at = m.tensor([0, 0, 1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = getattr(m.ones(2), name)(0, at, source, "prod")
        (slope,) = m.autograd.grad(y.sum(), source, create_graph=True)
        return m.autograd.grad((slope * slope).sum(), source)[0]

    words = []
    for m in (ng, torch):
        own = ng.jit(lambda s: slopes(ng, s)) if traced and m is ng else lambda s: slopes(m, s)
        with pytest.raises(RuntimeError, match="Double backward") as error:
            own(m.tensor([0.0, 0.0, 4.0], requires_grad=True))
        words.append(str(error.value))
    assert words[0] == words[1]
    single = slopes(ng, ng.tensor([0.0, 3.0, 4.0], requires_grad=True))
    assert single.tolist() == [0.0, 6.0, 0.0]


def test_nan_and_infinity_are_extrema(torch: Any) -> None:
    numbers = [math.nan, 1.0, -math.inf, math.inf]
    pairs = list(itertools.product(numbers, repeat=2))
    for mode, include_self in itertools.product(MODES, (True, False)):
        for name in ("scatter_reduce", "index_reduce"):
            ours, theirs = (
                outcome(
                    m,
                    lambda m: getattr(m.tensor([a for a, _ in pairs]), name)(
                        0,
                        m.arange(len(pairs)),
                        m.tensor([b for _, b in pairs]),
                        mode,
                        include_self=include_self,
                    ),
                )
                for m in (ng, torch)
            )
            assert ours == theirs


WRONG = """
x.scatter_reduce(0, i, s, "bad")
x.scatter_reduce(0, i, s)
x.scatter_reduce(0, i.float(), s, "sum")
x.scatter_reduce(0, i, s.double(), "sum")
x.scatter_reduce(0, i + 5, s, "sum")
x.scatter_reduce(0, i - 1, s, "amax")
x.scatter_reduce(2, i, s, "sum")
x.scatter_reduce(0, i[None], s, "sum")
x.scatter_reduce(0, i, s[:2], "sum")
x.scatter_reduce(0, i, s[None], "sum")
x.scatter_reduce(0, i[:0], s, "bad")
x.scatter_reduce(0, i, 2.0, "sum")
torch.scatter_reduce(x, 0, i, s, "sum", out=torch.zeros(2, dtype=torch.float64))
torch.ones(2, dtype=torch.complex64, requires_grad=True).scatter_reduce(0, i, s * 1j, "sum")
x.index_reduce(0, i, s, "sum")
x.index_reduce(0, i, s, "bad")
x.index_reduce(0, i.float(), s, "mean")
x.index_reduce(0, i, s.double(), "mean")
x.index_reduce(0, i + 5, s, "mean")
x.index_reduce(0, i - 1, s, "mean")
x.index_reduce(2, i, s, "mean")
x.index_reduce(0, i[None], s, "mean")
x.index_reduce(0, i, s[:2], "mean")
x.index_reduce(0, i, s[None], "mean")
torch.ones(3, 2).index_reduce(1, i, torch.ones(2, 3), "mean")
torch.tensor(3.0).index_reduce(0, torch.tensor([0]), torch.tensor([2.0]), "mean")
torch.tensor(3.0).index_reduce(0, torch.tensor(0), torch.tensor(2.0), "mean")
torch.tensor(3.0).scatter_reduce(0, torch.tensor([0]), torch.tensor([2.0]), "mean")
torch.tensor([3.0]).scatter_reduce(0, torch.tensor(0), torch.tensor(2.0), "mean")
x.scatter_reduce(0, i.int(), s, "sum")
x.index_reduce(0, i.int(), s, "mean")
""".strip().splitlines()


def test_wrong_arguments_are_refused_in_pytorchs_words(torch: Any) -> None:
    for line in WRONG:
        found = []
        for m in (ng, torch):
            names = {
                "torch": m,
                "x": m.tensor([1.0, 2.0]),
                "s": m.tensor([3.0, 5.0, 4.0]),
                "i": m.tensor([0, 0, 1]),
            }
            found.append(outcome(m, lambda m, names=names: eval(line, names)))
        assert found[0] == found[1], line


def test_each_example_has_positions_of_its_own() -> None:
    random = np.random.default_rng(4)
    x, s = (ng.from_numpy(random.normal(size=(5, 3, 4))) for _ in range(2))
    index = ng.from_numpy(random.integers(0, 4, (5, 3, 4)))
    for mode in MODES:
        for name, at in (("scatter_reduce", index), ("index_reduce", index[:, 0])):
            if (name, mode) == ("index_reduce", "sum"):
                continue

            def slope(x: Any, i: Any, s: Any, name: str = name, mode: str = mode) -> Any:
                return ng.func.grad(
                    lambda s: getattr(x, name)(1, i, s, mode, include_self=False).sin().sum()
                )(s)

            for own in (at, at[0]):
                axes = (0, 0 if own is at else None, 0)
                found = ng.func.vmap(slope, axes)(x, own, s)
                for k in range(5):
                    one = slope(x[k], own[k] if own is at else own, s[k])
                    np.testing.assert_allclose(found[k].numpy(), one.numpy(), rtol=1e-12)


def test_a_part_of_the_source_that_no_position_reads_has_no_gradient() -> None:
    source = ng.ones(2, 3, requires_grad=True)
    for mode in MODES:
        source.grad = None
        y = ng.ones(2, 3).scatter_reduce(1, ng.tensor([[0, 1]]), source, mode)
        y.sum().backward()
        assert source.grad.shape == (2, 3)
        assert source.grad[1].tolist() == [0.0] * 3
        assert source.grad[0, 2].item() == 0.0
