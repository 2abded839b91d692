"""The program ``python -m numgrad``: what it prints must agree with itself and with NumPy."""

from __future__ import annotations

import re
import subprocess
import sys

import numba
import numpy as np
import pytest

import numgrad as ng
from numgrad.__main__ import main


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


def test_unknown_command_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["nonsense"])
    assert stopped.value.code == 2
    assert "invalid choice: 'nonsense'" in capsys.readouterr().err
