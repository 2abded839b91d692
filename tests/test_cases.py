"""What a plain run leaves out of long tables: the same every time, and never an operation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.ops.core.primitive import CATALOGUE
from tests.cases import left_out, sample
from tests.jit import test_jit_catalogue
from tests.ops import test_catalogue_complex, test_catalogue_derivatives, test_catalogue_torch
from tests.ops.catalogue_strategies import array_primitives, elementwise_primitives

ROOT = Path(__file__).parents[1]
TABLE = """
import pytest
from hypothesis import given, settings, strategies as st

@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("n", range(20))
def test_table(n):
    pass

@pytest.mark.sampled(0.15)
@pytest.mark.parametrize("n", range(20))
def test_the_same_table(n):
    pass

@pytest.mark.sampled(0.1, by="kind")
@pytest.mark.parametrize("n", range(3))
@pytest.mark.parametrize("kind", "abc")
def test_groups(kind, n):
    pass

@pytest.mark.parametrize("n", range(4))
def test_always(n):
    pass

def test_examples():
    print("examples:", settings.default.max_examples)
"""


@given(st.sets(st.text(max_size=3), max_size=30), st.floats(0.01, 1))
def test_a_sample_is_fixed_and_a_share_and_never_empty(names: set[str], share: float) -> None:
    chosen = sample(names, share)
    assert chosen <= names and chosen == sample(sorted(names, reverse=True), share)
    assert len(chosen) - 1 < share * len(names) <= len(chosen) or not names
    assert sample(names, 1) == names


def run(folder: Path, *options: str) -> tuple[list[str], str]:
    """Run the table above; return which tests ran, and the output."""
    (folder / "test_it.py").write_text(TABLE)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = sampled: of which a share is run\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.cases", "-p", "no:cacheprovider"]
    finished = subprocess.run(
        [*command, "-vs", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return sorted(set(re.findall(r"::(\S+)", finished.stdout))), finished.stdout


def test_a_plain_run_takes_a_share_of_what_is_marked_and_says_so(tmp_path: Path) -> None:
    names, output = run(tmp_path)
    first, second = (
        {name.removeprefix(test) for name in names if name.startswith(f"{test}[")}
        for test in ("test_table", "test_the_same_table")
    )
    assert len(first) == 5 and len(second) == 3 and second < first
    groups = [name for name in names if name.startswith("test_groups")]
    assert len(groups) == 3 and {re.findall(r"[abc](?=[-\]])", name)[0] for name in groups} == set(
        "abc"
    )
    assert sum(name.startswith("test_always") for name in names) == 4
    assert "examples: 12" in output and "38 cases of long tables were left out" in output
    # Two processes leave out the same, and the one with the terminal says so.
    again, output = run(tmp_path, "-n", "2")
    assert again == names and "38 cases of long tables were left out" in output


@pytest.mark.parametrize(("option", "count"), [("all", 100), ("tenfold", 1000)])
def test_a_longer_run_leaves_nothing_out(option: str, count: int, tmp_path: Path) -> None:
    names, output = run(tmp_path, f"--cases={option}")
    assert len(names) == 20 + 20 + 9 + 4 + 1
    assert f"examples: {count}" in output and "left out" not in output


@pytest.mark.parametrize("options", [("test_it.py::test_table",), ("-k", "test_table")])
def test_what_is_named_runs_whole(options: tuple[str, ...], tmp_path: Path) -> None:
    names, output = run(tmp_path, *options)
    assert len(names) == 20 and "left out" not in output


# --- no operation is left out -------------------------------------------------------------------


def marks(test: Any, name: str) -> list[Any]:
    return [mark for mark in getattr(test, "pytestmark", []) if mark.name == name]


def cases_of(test: Any) -> list[Any]:
    """Return a test's cases, as pytest would collect them for one table of primitives."""
    (sampled,) = marks(test, "sampled")
    found = [("", {})]
    for mark in marks(test, "parametrize"):
        names = [mark.args[0]] if isinstance(mark.args[0], str) else mark.args[0]
        rows = [getattr(each, "values", each) for each in mark.args[1]]
        rows = [row if len(names) > 1 or isinstance(row, tuple) else (row,) for row in rows]
        found = [
            (f"{label}-{at}", {**given, **dict(zip(names, row, strict=False))})
            for label, given in found
            for at, row in enumerate(rows)
        ]
    return [
        types.SimpleNamespace(
            nodeid=f"{test.__module__}::{test.__name__}[{label}]",
            callspec=types.SimpleNamespace(params=given),
            get_closest_marker=lambda name: sampled,
        )
        for label, given in found
    ]


@pytest.mark.parametrize(
    "test",
    [
        test_catalogue_derivatives.test_array_operation_has_forward_mode,
        test_catalogue_derivatives.test_batched_gradients_of_a_sample_are_those_of_each_cotangent,
        test_catalogue_torch.test_integers_equal_pytorch,
        test_catalogue_torch.test_complex_values_and_gradients_equal_pytorch,
        test_jit_catalogue.test_traces_of_other_operations,
    ],
    ids=lambda test: test.__name__,
)
def test_a_sample_of_the_catalogue_has_every_operation(test: Any) -> None:
    cases = cases_of(test)
    names = left_out(cases)
    kept = {case.callspec.params["primitive"].name for case in cases if case.nodeid not in names}
    assert names and kept == {case.callspec.params["primitive"].name for case in cases}


def test_every_derivative_is_checked_to_second_order_in_a_plain_run() -> None:
    elementwise = {
        test_catalogue_derivatives.test_first_derivative_is_the_central_difference,
        test_catalogue_derivatives.test_second_derivative_is_the_central_difference_of_the_first,
    }
    other = test_catalogue_derivatives.test_array_operation_passes_gradcheck_and_gradgradcheck
    for test in (*elementwise, other):
        assert not marks(test, "sampled")
    for test in elementwise:
        (table,) = marks(test, "parametrize")
        assert list(table.args[1]) == elementwise_primitives()
    (table,) = marks(other, "parametrize")
    assert {case.values[0].name for case in table.args[1]} == {p.name for p in array_primitives()}
    checked = {p.name for p in (*elementwise_primitives(), *array_primitives())}
    with_rules = {name for name, p in CATALOGUE.items() if any(r is not None for r in p.rules)}
    # What takes complex numbers only has its derivatives checked there, in every run, too.
    test = test_catalogue_complex.test_elementwise_derivatives_are_those_of_finite_differences
    assert not marks(test, "sampled")
    assert {name for name in with_rules - checked if "f" in CATALOGUE[name].accepts} == set()
