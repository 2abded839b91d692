"""Rows of few elements: functions such as ``exp`` are computed of several rows at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import numgrad as ng

Function = Callable[[Any], Any]


def read_again(x: Any) -> Any:
    """Return what takes, behind a function of a row, what the row computed in front of it."""
    e = x.exp()
    s = (e / e.sum(-1, keepdim=True)).tanh()
    return (s * s.sum(-1, keepdim=True)).sin() * s + e


PROGRAMS: dict[str, Function] = {
    "differences": lambda x: (x[:, None] - x[None]).exp(),
    "of_differences": lambda x: ((x[:, None] - x[None]).abs() + 1) ** -1.5,
    "function_of_function": lambda x: (x.exp() * x).tanh() + x.sigmoid().roll(1, 0),
    "sines": lambda x: (x[:, None] * x[None]).sin() * (x[:, None] - x[None]).exp().cos(),
    "logsumexp": lambda x: (x * 2).logsumexp(-1),
    "softmax": lambda x: (x * 2).softmax(-1) + x.exp().sum(-1, keepdim=True),
    "log_softmax": lambda x: (x * 2).log_softmax(-1),
    "of_sums": lambda x: (x.exp().sum(-1).log() - x.amax(-1).tanh()).sigmoid() * x.sum(-1).exp(),
    "kept": lambda x: x.exp() / x.exp().sum(-1, keepdim=True).log() + x.tanh() * x.tanh().amax(),
    "of_a_row": lambda x: (x.exp() - x.sum(-1, keepdim=True).tanh()).erf().amax(-1),
    "over_rows": lambda x: (x[:, None] - x[None]).sigmoid().sum(1),
    "of_all": lambda x: (x[:, None] - x[None]).exp().sum() * x.exp(),
    "of_a_rows_own": lambda x: (x.abs() + 1) ** x[:, :1] / x[:, :1] + x[:, :1].exp() * x.cos(),
    "read_again": read_again,
    "turned": lambda x: x.t().exp() + x.t() * x.tanh().t(),
    "parted": lambda x: ng.where(x > 0, x.exp(), (x * x).log1p()) * x[:1],
    "blocks": lambda x: (x[None, :, None, :] * x[:3, None, None, :] + x[None, None, :2, :]).exp(),
}


def numbers(rows: int, columns: int) -> ng.Tensor:
    return ng.from_numpy(np.random.default_rng(rows).standard_normal((rows, columns)))


@pytest.mark.sampled(0.18, by="name")
@pytest.mark.parametrize("shape", [(40, 3), (3, 8), (33, 9), (20, 33), (2, 64), (1, 5)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_eager_calls(name: str, shape: tuple[int, int]) -> None:
    function, x = PROGRAMS[name], numbers(*shape)
    assert ng.jit(function)(x).numpy().tobytes() == function(x).numpy().tobytes()


@pytest.mark.sampled(0.3, by="name")
@pytest.mark.parametrize("shape", [(40, 3), (33, 9)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_of_dispatchers_are_those_of_eager_calls(name: str, shape: tuple[int, int]) -> None:
    function, x = PROGRAMS[name], numbers(*shape)
    dispatcher = ng.jit(function).lower(x).dispatcher
    assert np.asarray(dispatcher(x.numpy())).tobytes() == function(x).numpy().tobytes()


@pytest.mark.parametrize("name", ["differences", "of_differences", "logsumexp", "over_rows"])
def test_functions_are_computed_of_several_rows_at_once(name: str) -> None:
    source = ng.jit(PROGRAMS[name]).lower(numbers(40, 20)).source
    for found in re.finditer(r"scalar\.(exp|pow|sigmoid)\(", source):
        loop = source[: found.start()].rsplit("for ", 1)[1]
        assert loop.startswith("at_strip in range((strip_end - strip) * ")


def test_functions_of_rows_are_computed_of_several_at_once() -> None:
    """One logarithm for each row takes as long as the exponentials of a row of 50 elements."""
    for name in ("log_softmax", "logsumexp", "of_sums"):
        source = ng.jit(PROGRAMS[name]).lower(numbers(40, 20)).source
        found = list(re.finditer(r"scalar\.(log|tanh|sigmoid)\(", source))
        assert found
        for each in found:
            loop = source[: each.start()].rsplit("for ", 1)[1]
            assert loop.startswith("at_strip in range(strip_end - strip)")


def test_what_is_in_a_strip_is_not_copied_row_by_row() -> None:
    """What is read where it has just been written, by narrower instructions, is waited for."""
    for name in ("softmax", "log_softmax", "logsumexp"):
        source = ng.jit(lambda x, name=name: getattr(x, name)(-1)).lower(numbers(40, 20)).source
        assert "np.empty" not in source and not re.search(r"br\d+ = stack", source)


def test_a_few_columns_are_written_as_a_number() -> None:
    source = ng.jit(PROGRAMS["differences"]).lower(numbers(40, 3)).source
    assert "in range(3):" in source
    assert "%" not in source  # nothing is divided in each row


def test_rows_that_go_on_stay_one_loop() -> None:
    function = PROGRAMS["of_all"]
    x = numbers(70, 20)  # whose blocks end within rows
    assert ng.jit(function)(x).numpy().tobytes() == function(x).numpy().tobytes()


@pytest.mark.parametrize("shape", [(5, 300, 3), (2, 2100, 3), (300, 20, 5), (3, 40, 300)])
def test_rows_are_added_up_where_their_lanes_are_near(shape: tuple[int, ...]) -> None:
    x = ng.from_numpy(np.random.default_rng(0).standard_normal(shape))

    def sums(x: Any) -> Any:
        return (x * 2).sum(1), (x.exp() * 3).amax(1)

    compiled = ng.jit(sums)
    expected = [each.numpy().tobytes() for each in sums(x)]
    dispatched = compiled.lower(x).dispatcher(x.numpy())
    assert [each.numpy().tobytes() for each in compiled(x)] == expected
    assert [each.tobytes() for each in dispatched] == expected
    # Of each block one row is kept, and nothing is divided where elements are added.
    plain = ng.jit(lambda x: ((x * 2).sum(1), (x * 3).amax(1)))
    rows = plain.lower(x).source.split("for group in")[1].split("combine_lanes")[0]
    assert "//" not in rows


@pytest.mark.parametrize("shape", [(200, 3), (40, 30), (3, 500)])
def test_gradients_that_are_added_up_in_front_of_what_they_do_not_depend_on(
    shape: tuple[int, int],
) -> None:
    def total(x: Any) -> Any:
        return (x[:, None] - x[None]).sum()

    x = numbers(*shape)
    found = ng.jit(ng.func.grad(total))(x)
    assert found.numpy().tobytes() == ng.func.grad(total)(x).numpy().tobytes()
