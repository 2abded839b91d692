"""The fixture `torch`: PyTorch, or its recorded answers where it is not installed.

Where PyTorch is installed, a test with recorded answers runs with both: PyTorch answers, and what
it answers is compared with the record. Its numbers depend on the vector instructions it has (at the
edge of overflow it returns a number with one set, inf with another), so numbers are compared where
the record was made with the same ones, and all the rest (dtypes, shapes, words) everywhere.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import math
import os
import pickle
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.answers import archive
from tests.answers.stand_in import RECORD_ANEW, Player, Recorder
from tests.cases import names_tests

NO_TORCH = "PyTorch is not installed"
UNANSWERED = pytest.StashKey[int]()  # how many tests were left out for want of it
INSTALLED = False
with contextlib.suppress(ModuleNotFoundError):  # `Missing` raises it, if it is there already
    INSTALLED = importlib.util.find_spec("torch") is not None
# Where to write answers to; set by `python -m tests.answers`.
RECORD_TO = os.environ.get("NUMGRAD_TESTS_RECORD_TO")
# Set to do without PyTorch where it is installed.
WITHOUT = bool(os.environ.get("NUMGRAD_TESTS_WITHOUT_PYTORCH"))


class Missing:
    """Finds nothing: an import of PyTorch raises, as where it is not installed."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """Raise what an import of a missing module raises."""
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)


if WITHOUT:
    sys.meta_path.insert(0, Missing)  # type: ignore[arg-type]


def recordable(item: Any) -> bool:
    """Return whether what a test asks of PyTorch is the same in every run, and compared with ours.

    Hypothesis draws other examples, and a test whose parameter names PyTorch runs nothing of ours.
    """
    if getattr(item.obj, "is_hypothesis_test", False):
        return False
    parameters = getattr(item, "callspec", None)
    values = () if parameters is None else parameters.params.values()
    return not any(isinstance(value, str) and value == "torch" for value in values)


@pytest.fixture
def torch(request: pytest.FixtureRequest) -> Iterator[Any]:
    """PyTorch, to compare with, or what it answered; where there is neither, a test is skipped."""
    identity = request.node.nodeid
    path, name = archive.split_identity(identity)
    # What is drawn ten times as often was not recorded.
    known = request.config.getoption("--cases") != "tenfold"
    if not INSTALLED or WITHOUT:
        record = archive.read(path).get(name) if known else None
        if record is None:
            pytest.skip(NO_TORCH)
        yield Player(*record).root
        return
    import torch as module

    # The tests' arrays are small, and one thread a worker keeps parallel runs from crowding.
    module.set_num_threads(1)
    kept = archive.read(path).get(name) if known and not RECORD_TO else None
    if not recordable(request.node) or not (RECORD_TO or kept):
        yield module
        return
    recorder = Recorder(module)
    yield recorder.root
    passed = getattr(request.node, "passed", False)
    if kept and passed:
        same = archive.instructions(path) == module.backends.cpu.get_cpu_capability()
        difference = differs(kept, (recorder.entries, recorder.arrays), compare_values=same)
        assert not difference, f"PyTorch's recorded answer is another: {difference}. {RECORD_ANEW}"
    elif RECORD_TO and passed:
        _write_part(Path(RECORD_TO), identity, recorder)


def _write_part(folder: Path, identity: str, recorder: Recorder) -> None:
    try:
        json.dumps(recorder.entries)
    except TypeError:
        return
    file = folder / f"{zlib.crc32(identity.encode()):08x}-{os.getpid()}.pickle"
    with file.open("wb") as stream:
        pickle.dump((identity, recorder.entries, recorder.arrays), stream)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Note on a test whether it passed, for the fixture."""
    report = yield
    if report.when == "call":
        item.passed = report.passed
    return report


def differs(kept: archive.Record, anew: archive.Record, compare_values: bool = True) -> str:
    """Say where two records differ by more than roundings; nothing where they don't.

    Without `compare_values` any floating-point numbers are alike. Which warnings come depends on
    what ran before: some are given once a process.
    """
    (entries, arrays), (new_entries, new_arrays) = kept, anew
    mine = [each for each in entries if each[1] != "warn"]
    other = [each for each in new_entries if each[1] != "warn"]
    if len(mine) != len(other):
        return f"{len(mine)} answers, now {len(other)}"
    for at, (one, two) in enumerate(zip(mine, other, strict=True)):
        if not _alike(one, two, compare_values):
            return f"number {at} was {one}, now {two}"
    for at, (was, now) in enumerate(zip(arrays, new_arrays, strict=True)):
        if was.dtype != now.dtype or was.shape != now.shape:
            return f"array {at} was {was.dtype}{was.shape}, now {now.dtype}{now.shape}"
        if (compare_values or was.dtype.kind not in "fc") and not _near(was, now):
            return f"array {at} was {was}, now {now}"
    return ""


def _alike(one: Any, two: Any, compare_values: bool) -> bool:
    if isinstance(one, (list, tuple)):
        if not isinstance(two, (list, tuple)) or len(one) != len(two):
            return False
        return all(_alike(*pair, compare_values) for pair in zip(one, two, strict=True))
    if isinstance(one, dict):
        return (
            isinstance(two, dict)
            and one.keys() == two.keys()
            and all(_alike(each, two[key], compare_values) for key, each in one.items())
        )
    if isinstance(one, float):
        if not isinstance(two, float):
            return False
        return not compare_values or _near(np.array(one), np.array(two))
    if isinstance(one, str) and isinstance(two, str):
        return one == two or _say_the_same(one, two, compare_values)
    return type(one) is type(two) and bool(one == two)


def _say_the_same(one: str, two: str, compare_values: bool) -> bool:
    """Compare texts, of which numbers may differ by a rounding of what they print."""
    words, others = _FRACTION.split(one), _FRACTION.split(two)
    if words[::2] != others[::2]:
        return False
    for was, now in zip(words[1::2], others[1::2], strict=True):
        last = 10.0 ** -len(was.partition(".")[2])
        if compare_values and not math.isclose(float(was), float(now), rel_tol=1e-9, abs_tol=last):
            return False
    return True


_FRACTION = re.compile(r"(-?\d+\.\d+)")


def _near(was: np.ndarray, now: np.ndarray) -> bool:
    """Compare numbers up to some roundings, which cancellation makes larger."""
    if was.dtype.kind not in "fc":
        return bool((was == now).all())
    scale = np.nanmax(np.abs(np.where(np.isfinite(was), was, 0)), initial=1.0)
    tolerance = 1e-4 if _is_single(was) and _is_single(now) else 1e-9
    return bool(np.allclose(was, now, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _is_single(numbers: np.ndarray) -> bool:
    """Whether a float32 holds each number exactly: it comes from one, whatever it is kept as."""
    single = np.float32 if numbers.dtype.kind == "f" else np.complex64
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array_equal(numbers.astype(single).astype(numbers.dtype), numbers, equal_nan=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test that asks for the fixture, directly or through another one.

    Of those that can't have an answer, only what is named goes as far as being skipped.
    """
    unanswered = []
    without = (WITHOUT or not INSTALLED) and not names_tests(config)
    for item in items:
        if "torch" in getattr(item, "fixturenames", ()):
            item.add_marker("torch")
            if without and not _may_have_answer(item):
                unanswered.append(item)
    config.stash[UNANSWERED] = len(unanswered)
    if unanswered:
        names = {item.nodeid for item in unanswered}
        items[:] = [item for item in items if item.nodeid not in names]
        config.hook.pytest_deselected(items=unanswered)


def _may_have_answer(item: pytest.Item) -> bool:
    """Return whether a test is of the kind that has answers, in a file that has some."""
    path, _ = archive.split_identity(item.nodeid)
    return recordable(item) and _has_answers(path)


@functools.cache
def _has_answers(path: str) -> bool:
    return archive.file_for(path).exists()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that has the terminal how many tests were left out."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["unanswered"] = session.config.stash.get(UNANSWERED, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take a worker's word for it; every worker collects the same tests."""
    count = getattr(node, "workeroutput", {}).get("unanswered", 0)
    node.config.stash[UNANSWERED] = max(node.config.stash.get(UNANSWERED, 0), count)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many comparisons with PyTorch did not run, so that their absence is not silent."""
    skipped = terminalreporter.config.stash.get(UNANSWERED, 0) + sum(
        isinstance(report.longrepr, tuple) and NO_TORCH in report.longrepr[2]
        for report in terminalreporter.getreports("skipped")
    )
    if skipped:
        terminalreporter.write_line(
            f"{skipped} comparisons with PyTorch itself were skipped: {NO_TORCH}. "
            "Where its answers are recorded, they were compared with.",
            yellow=True,
        )
