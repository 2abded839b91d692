"""The program ``python -m numgrad``: what it prints must agree with itself and with NumPy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import numgrad as ng
from numgrad.__main__ import main
from tests.children import ended_well


@pytest.fixture
def tour(capsys: pytest.CaptureFixture[str]) -> str:
    assert main([]) == 0
    return capsys.readouterr().out


def value(output: str, label: str) -> str:
    """Return what was printed beside a label."""
    found = re.search(rf"^{re.escape(label)} +(\S.*)$", output, flags=re.MULTILINE)
    assert found is not None, f"{label!r} is not in the output"
    return found[1]


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        ("w.grad after y.backward()", "2*w + x + 1, by hand"),
        ("y''", "2 * cos(x) * exp(x), by hand"),
        ("coefficients", "NumPy's least-squares solution"),
        ("fast(x), the value", "without jit, the value"),
        ("fast(x), the gradient", "without jit, the gradient"),
        ("descend(x, steps, rate), rounded", "the minimum"),
    ],
)
def test_tour_computes_what_is_known_otherwise(tour: str, computed: str, expected: str) -> None:
    assert value(tour, computed) == value(tour, expected)


def test_tour_accumulates_gradients(tour: str) -> None:
    assert value(tour, "x.grad after the first backward") == "tensor([32.])"
    assert value(tour, "x.grad after the second") == "tensor([64.])"


def test_tour_shows_both_errors(tour: str) -> None:
    assert "RuntimeError: Trying to backward through the graph a second time" in tour
    assert "RuntimeError: a leaf Variable that requires grad" in tour


def test_tour_fits_a_terminal(tour: str) -> None:
    cache = str(ng.cache_dir() or "off")
    lines = [line for line in tour.splitlines() if not line.endswith(cache)]
    assert max(map(len, lines)) < 80


def test_tour_shows_transformations_and_compiled_code(tour: str) -> None:
    point = np.array([-1.0, 1.5])
    slope = [-400 * point[0] * (point[1] - point[0] ** 2) - 2 * (1 - point[0]), 100.0]
    assert (
        value(tour, "func.value_and_grad(f)(x)") == f"(29.0, {ng.tensor(slope, dtype=ng.float32)})"
    )
    assert value(tour, "func.grad(sin)(0.0)") == "1.0"
    for name in ("ng.func", "ng.jit", "lower(x).dispatcher", "@njit"):
        assert name in tour


def test_tour_ends_with_what_to_read_next(tour: str) -> None:
    *_, last = re.split(r"^(?=.+\n-+$)", tour, flags=re.MULTILINE)
    title, _, *lines = last.rstrip().splitlines()
    assert title == "What to read next" and len(lines) > 3
    root = Path(__file__).parents[1]
    places = [line[:30].strip() for line in lines]
    files = [place for place in places if place.endswith(".md")]
    assert files and all((root / file).is_file() for file in files)


def test_tour_leaves_the_default_dtype(tour: str) -> None:
    assert ng.get_default_dtype() is ng.float32


def test_fit_converges(tour: str) -> None:
    losses = [float(loss) for loss in re.findall(r"^loss after .* (\S+)$", tour, re.MULTILINE)]
    assert len(losses) > 2
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.01 * losses[0]


def test_report_names_versions_threads_and_cache(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    report = capsys.readouterr().out
    assert value(report, "numgrad") == ng.__version__
    assert value(report, "numpy") == np.__version__
    assert value(report, "numba") == numba.__version__
    assert value(report, "threads").startswith(f"{ng.get_num_threads()} of ")
    assert value(report, "kernel cache") == str(ng.cache_dir() or "off")


def test_program_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "numgrad", "report"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert value(done.stdout, "numgrad") == ng.__version__
    assert done.stderr == ""


def test_the_program_gives_the_tour() -> None:
    """As ``__main__``, which is another module than the one that the other tests import."""
    script = "import runpy\nrunpy.run_module('numgrad', run_name='__main__', alter_sys=True)"
    assert "What to read next" in ended_well(script)


def test_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["nonsense"])
    assert stopped.value.code == 2
    assert "invalid choice: 'nonsense'" in capsys.readouterr().err
