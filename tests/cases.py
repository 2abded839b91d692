"""How much of what can be tested a run tests: ``--cases=sample``, ``all`` or ``tenfold``.

Many tests run over tables: every operation with every dtype, every layout, every way of calling.
What proves that an operation is right runs always; a table that varies what was proven already is
marked, with how much of it a plain run takes::

    @pytest.mark.sampled(0.25)                    # a quarter of its cases
    @pytest.mark.sampled(0.25, by="primitive")    # of each primitive's cases; at least one of each

Which ones goes by a hash of their names: the same in every run and on every machine, others in
every file. Tests of one file that go through one table take the same cases of it, and of the dtypes
of an operation all tests prefer the same ones, mostly float64, so that fewer kernels are compiled.
``--cases=all`` runs all of them, and Hypothesis draws its 100 examples, of which a sample has an
eighth, the same ones every time. ``--cases=tenfold`` draws ten times as many as that. A run that
names tests, by ``::`` or ``-k``, runs all the cases of these, and draws anew. A test that goes
through points of which a sample takes some (`thinned`) has the share 1.
"""

from __future__ import annotations

import math
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

__all__ = ["examples", "is_sample", "names_tests", "sample", "thinned"]

Points = TypeVar("Points", bound="Sequence[Any] | np.ndarray[Any, Any]")
CASES = pytest.StashKey[str]()
LEFT_OUT = pytest.StashKey[int]()
# Tests that have no more cases than a sample takes.
SAMPLED = pytest.StashKey[set[str]]()
# The dtypes that most tests have.
COMMON_DTYPES = "float64", "complex128", "int64"
# How many examples Hypothesis draws for a test that does not say.
DRAWN = {"sample": 12, "all": 100, "tenfold": 1000}


def examples(of_hundred: int, in_sample: int | None = None) -> int:
    """Return how many examples a test draws that draws `of_hundred` where others draw 100.

    Never fewer than three, unless it does not draw three of a hundred. In a sample it draws
    `in_sample`, where that is given: for a test that draws for each operation.
    """
    if in_sample is not None and settings.default.max_examples == DRAWN["sample"]:
        return in_sample
    return max(min(of_hundred, 3), of_hundred * settings.default.max_examples // 100)


def thinned(points: Points, step: int) -> Points:
    """Return every `step`-th of the points that a test goes through, in a sample; else all."""
    some: Any = points[::step]
    return some if settings.default.max_examples == DRAWN["sample"] else points


def is_sample(config: pytest.Config) -> bool:
    """Return whether a run is a sample: of all there is, or of whole files."""
    return config.getoption("--cases") == "sample" and not names_tests(config)


def names_tests(config: pytest.Config) -> bool:
    """Return whether a run names tests, and not only files and folders."""
    return bool(config.option.keyword or any("::" in argument for argument in config.args))


def sample(
    names: Iterable[str], share: float, preferred: Callable[[str], int] = lambda name: 0
) -> set[str]:
    """Return that share of names, rounded up: the first ones in the order of their hashes.

    Before that goes what `preferred` gives.
    """
    ordered = sorted(names, key=lambda name: (preferred(name), zlib.crc32(name.encode()), name))
    return set(ordered[: math.ceil(share * len(ordered))])


def _rank(item: Any, by: str | None) -> int:
    """Return a hash of the dtype of a case and of what else its group has in common.

    Of cases without a dtype the file and the case, but not the test, so that what is compiled for
    one test of a file serves the others. Nearly always those dtypes come first whose kernels other
    tests compile anyway, of derivatives above all.
    """
    dtype = item.callspec.params.get("dtype")
    dtype_name = str(getattr(dtype, "__name__", dtype)).rpartition(".")[2]
    if by in (None, "dtype") or dtype is None:
        file, _, rest = item.nodeid.partition("::")
        text = f"{file} {rest.partition('[')[2]}"
    else:
        value = item.callspec.params[by]
        text = f"{getattr(value, 'name', value)} {dtype_name}"
    rank = zlib.crc32(text.encode())
    return rank >> 4 if dtype_name in COMMON_DTYPES and by != "dtype" else rank


def _group(item: Any, by: str | None) -> Hashable:
    """Return what all the cases have in common that an item is sampled from."""
    test = item.nodeid.partition("[")[0]
    if by is None:
        return test
    value = item.callspec.params[by]
    return test, getattr(value, "name", value)


def left_out(items: Iterable[Any]) -> set[str]:
    """Return the names of the tests that a sample does without."""
    groups: dict[Hashable, list[str]] = defaultdict(list)
    shares: dict[Hashable, float] = {}
    ranks: dict[str, int] = {}
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and hasattr(item, "callspec"):
            (share,), by = mark.args, mark.kwargs.get("by")
            group = _group(item, by)
            groups[group].append(item.nodeid)
            shares[group] = share
            ranks[item.nodeid] = _rank(item, by)
    return {
        name
        for group, names in groups.items()
        for name in set(names) - sample(names, shares[group], ranks.__getitem__)
    }


# --- hooks; conftest.py in the root of the repository imports them ------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take how much is to be tested."""
    parser.addoption(
        "--cases",
        choices=list(DRAWN),
        default="sample",
        help="a sample of the cases of long tables (the default), all of them, or tenfold: all, "
        "with ten times as many of what is drawn",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Have Hypothesis draw as many examples as wanted; the same every time in CI and in a sample.

    So who runs the README's command sees what CI saw. There is no deadline, because the first
    example of a test may compile a kernel; and the fixture `torch` keeps nothing from one example
    to the next.
    """
    for name, count in DRAWN.items():
        settings.register_profile(
            name,
            deadline=None,
            derandomize="CI" in os.environ or is_sample(config),
            max_examples=count,
            print_blob=True,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
        )
    settings.load_profile(config.getoption("--cases"))
    config.stash[LEFT_OUT] = 0
    config.stash[SAMPLED] = set()


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Leave out what a sample does without before pytest makes tests of it: most of all cases.

    Where a pytest keeps the cases elsewhere, they are left out when they are collected.
    """
    calls, test, config = getattr(metafunc, "_calls", None), metafunc.definition, metafunc.config
    if not (calls and test.get_closest_marker("sampled") and is_sample(config)):
        return
    cases = {f"{test.nodeid}[{call.id}]": call for call in calls}
    names = left_out(_Case(name, call, test) for name, call in cases.items())
    if len(names) == len(
        cases
    ):  # pytest makes a test of no case: it is left out when it is collected
        return
    metafunc._calls = [call for name, call in cases.items() if name not in names]
    config.stash[LEFT_OUT] += len(names)
    config.stash[SAMPLED].add(test.nodeid)


class _Case(NamedTuple):
    """A case that is no test yet."""

    nodeid: str
    callspec: Any
    test: Any

    def get_closest_marker(self, name: str) -> Any:
        return self.test.get_closest_marker(name)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a sample does without."""
    if not is_sample(config):
        return
    sampled = config.stash[SAMPLED]
    names = left_out(item for item in items if item.nodeid.partition("[")[0] not in sampled)
    if names:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in names])
        config.stash[LEFT_OUT] += len(names)
        items[:] = [item for item in items if item.nodeid not in names]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that has the terminal how many cases were left out."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take a worker's word for it; every worker collects the same tests."""
    count = getattr(node, "workeroutput", {}).get("left_out", 0)
    node.config.stash[LEFT_OUT] = max(node.config.stash[LEFT_OUT], count)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many cases did not run, so that their absence is not silent."""
    count = terminalreporter.config.stash[LEFT_OUT]
    if count:
        terminalreporter.write_line(
            f"{count} cases of long tables were left out, and Hypothesis drew an eighth of its "
            "examples: this was a sample. --cases=all runs everything.",
            yellow=True,
        )
