"""``python -m numgrad cache``: what it says, what it compiles, what it removes."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from numgrad.__main__ import main
from numgrad.base import progress
from numgrad.base.progress import Progress
from numgrad.codegen.compile import cache_files
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.tools.cache_warming import Job, warm_one
from tests import children
from tests.children import ended_well

FEW = ("neg", "mul", "select")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a process that has not warned of it."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache_files._State, "warned", False)
    return tmp_path / "cache"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    if arguments[-2:] != ("--jobs", "1"):
        command = [sys.executable, "-m", "numgrad", "cache", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    script = "import runpy\nrunpy.run_module('numgrad', run_name='__main__', alter_sys=True)"
    return children.run(script, "cache", *arguments)


# --- warm ----------------------------------------------------------------------------------------

PROGRAM = """
import numgrad as ng
from numgrad.codegen.compile.cache import counts
for shape in ((4,), (2, 3), (100, 100)):
    x = ng.ones(shape, requires_grad=True)
    w = ng.full(shape, 2.0, requires_grad=True)
    for y in (-x, x * w, x * 2, 2.0 * x, w * x.detach()):
        x.grad = w.grad = None
        y.backward(ng.ones(1).expand(shape))
    y[0].detach()
print(*counts())
"""


def test_after_warming_a_fresh_process_compiles_nothing(directory: Path) -> None:
    warmed = run("warm", *FEW, "--dtype", "float32", "--jobs", "2")
    assert warmed.returncode == 0
    compiled = int(re.match(r"(\d+) kernels compiled", warmed.stdout)[1])  # type: ignore[index]
    kernels = len(list(directory.glob("*.kernel")))
    assert compiled >= kernels > 8  # two processes may compile the same kernel
    hits, misses = map(int, ended_well(PROGRAM).split())
    assert hits >= 8 and misses == 0
    again = run("warm", *FEW, "--dtype", "float32", "--jobs", "1")
    assert again.stdout.startswith(f"0 kernels compiled, {kernels} found in the cache, in ")


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is no signal to a process there")
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("processes", ["1", "2"])
def test_ctrl_c_keeps_what_was_compiled(processes: str, directory: Path) -> None:
    command = [sys.executable, "-m", "numgrad", "cache", "warm", "--jobs", processes]
    # In a session of its own, as at a terminal, where Ctrl-C goes to all of the processes.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not list(directory.glob("*.kernel")):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert output.startswith("interrupted: what was compiled is kept")
    assert f"the cache is {directory}" in output


def test_an_operation_that_does_not_exist_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["cache", "warm", "mul", "nonsense"])
    assert stopped.value.code == 2
    assert "no operation called nonsense" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--jobs", "0"], ["--jobs", "x"], ["--dtype", "float16"]])
def test_bad_options_are_usage_errors(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["cache", "warm", *arguments])
    assert stopped.value.code == 2


def test_without_a_cache_warming_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    assert main(["cache", "warm", "neg"]) == 1
    assert "there is no kernel cache" in capsys.readouterr().err


def test_where_nothing_can_be_written_warming_fails(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory.write_text("a file")
    with pytest.warns(cache_files.CacheWarning):
        assert main(["cache", "warm", "neg"]) == 1
    assert "nothing can be written" in capsys.readouterr().err


def test_an_operation_that_fails_is_reported_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(make: object) -> None:
        raise AssertionError("a broken sample")

    called = []
    (sample, *_) = CATALOGUE["diagonal"].samples

    def note(make: object) -> object:
        called.append(make)
        return sample(make)

    monkeypatch.setattr(CATALOGUE["select"], "samples", [fail])
    monkeypatch.setattr(CATALOGUE["diagonal"], "samples", [note])
    assert main(["cache", "warm", "select", "diagonal", "--dtype", "float32", "--jobs", "1"]) == 1
    output = capsys.readouterr()
    assert "select float32 failed: AssertionError: a broken sample" in output.err
    assert called


def test_a_dtype_that_an_operation_refuses_is_no_failure() -> None:
    warmed = warm_one(Job("mm", "bool"))
    assert warmed.refused == warmed.calls > 0
    assert warmed.failure == ""


# --- info and clear ------------------------------------------------------------------------------


def test_info_counts_what_is_there(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "info"]) == 0
    assert re.search(r"^kernels +0 \(0.0 MB\)", capsys.readouterr().out, re.MULTILINE)
    assert run("warm", "neg", "--dtype", "float32", "--jobs", "1").returncode == 0
    (directory / "add-00000000-000000000000000000000000.kernel").write_bytes(b"of another version")
    capsys.readouterr()
    assert main(["cache", "info", "--kernels"]) == 0
    output = capsys.readouterr().out
    count = len(list(directory.glob("*.kernel")))
    assert re.search(rf"^path +{re.escape(str(directory))}$", output, re.MULTILINE)
    assert re.search(rf"^kernels +{count} .* of which {count - 1} ", output, re.MULTILINE)
    assert re.search(r"^ +numba +\d", output, re.MULTILINE)
    assert "neg, for operands a." in output


def test_clear_removes_only_what_is_ours(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("warm", "neg", "--dtype", "float32", "--jobs", "1").returncode == 0
    theirs = {"notes.txt", "script.py", "model.kernel", "loop-1.py"}
    for name in theirs:
        (directory / name).write_text("not numgrad's")
    (directory / "add-00000000-000000000000000000000000.kernel").mkdir()
    capsys.readouterr()
    assert main(["cache", "clear"]) == 0
    assert re.match(r"[1-9]\d* files removed from ", capsys.readouterr().out)
    left = {path.name for path in directory.iterdir()}
    assert left == {*theirs, "add-00000000-000000000000000000000000.kernel"}
    assert main(["cache", "clear"]) == 0
    assert capsys.readouterr().out.startswith("0 files removed")


@pytest.mark.parametrize("action", ["info", "clear"])
def test_without_a_cache_there_is_nothing_to_say(
    action: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    assert main(["cache", action]) == 0
    assert "there is no kernel cache" in capsys.readouterr().out


def test_clear_reports_what_it_cannot_remove(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory.mkdir()
    (directory / "add-00000000-000000000000000000000000.kernel").touch()

    def refuse(path: str) -> None:
        raise PermissionError(f"not permitted: {path}")

    monkeypatch.setattr(os, "unlink", refuse)
    assert main(["cache", "clear"]) == 1
    assert "not permitted" in capsys.readouterr().err


# --- progress ------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that goes on by a second at each look."""
    seconds = [0.0]

    def monotonic() -> float:
        seconds[0] += 1
        return seconds[0]

    monkeypatch.setattr(progress.time, "monotonic", monotonic)
    return seconds


def test_a_terminal_shows_a_bar_on_one_line(clock: list[float]) -> None:
    stream = Terminal()
    with Progress(4, stream) as shown:
        for label in "abcd":
            shown.step(label)
    pictures = stream.getvalue().split("\r")[1:]
    assert pictures[0].startswith("[######..................] 1/4, 1 s, about 3 s left: a")
    assert pictures[-1].startswith(f"[{'#' * 24}] 4/4, 4 s: d")
    assert stream.getvalue().count("\n") == 1


def test_elsewhere_there_are_a_few_plain_lines(clock: list[float]) -> None:
    stream = io.StringIO()
    with Progress(1000, stream) as shown:
        for _ in range(1000):
            shown.step("x")
    lines = stream.getvalue().splitlines()
    assert len(lines) == progress.LINES
    assert lines[0] == "50/1000, 50 s, about 15 min 50 s left: x"
    assert lines[-1] == "1000/1000, 16 min 40 s: x"


def test_the_estimate_follows_the_latest_steps(clock: list[float]) -> None:
    shown = Progress(200, io.StringIO())
    for _ in range(100):
        shown.step("quick")
    clock[0] += 39  # the next ones take as much longer
    for _ in range(progress.RECENT):
        shown.step("slow")
        clock[0] += 9
    assert shown.remaining() == pytest.approx(60 * 10, rel=0.2)
