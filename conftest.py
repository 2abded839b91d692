"""Imports numgrad before pytest looks for examples in it, and forgets what examples declare.

Otherwise pytest imports the folder ``numgrad/jit`` by itself, after the package, and that module
takes the place of the function ``numgrad.jit``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Generator, Iterator
from typing import Any

import pytest

import numgrad
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS
from numgrad.ops.signatures.declared import DECLARED

pytest_plugins = ["tests.cases"]  # how much of it all a run tests
# Tools, which need what tests do without.
collect_ignore = ["tests/mutants.py", "tests/opinfos.py", "tests/write_outcomes.py"]


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Leave no operation behind that a test or an example declares."""
    registries: tuple[dict[Any, Any], ...] = (CATALOGUE, FUNCTIONS, METHODS, INPLACE, DECLARED)
    before = [dict(registry) for registry in registries]
    yield
    for name in (set(METHODS) - set(before[2])) | (set(INPLACE) - set(before[3])):
        delattr(numgrad.Tensor, name)
    for registry, kept in zip(registries, before, strict=True):
        registry.clear()
        registry.update(kept)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Spare the garbage collector the tests, of which there are tens of thousands."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Have each of several processes begin to import the files of tests in another place.

    Pytest rewrites and compiles what was not imported before, and keeps that in a folder; so one
    finds there what another has done, where otherwise all do everything, at the same time.
    """
    given = getattr(collector.config, "workerinput", None)
    if given is None or not isinstance(collector, pytest.Session):
        return
    root = collector.config.rootpath
    folders = [root / each for each in collector.config.args if (root / each).is_dir()]
    files = sorted({file for folder in folders for file in folder.rglob("test_*.py")})
    at = len(files) * int(given["workerid"].removeprefix("gw")) // given["workercount"]
    for file in files[at:] if at else ():
        name = ".".join(file.relative_to(root).with_suffix("").parts)
        # What can't be imported is asked for again, and reported then.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


@pytest.fixture(autouse=True, scope="session")
def _heap_looked_through_seldom(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect garbage after tens of thousands of new objects, in a sample; else as Python does.

    A kernel that is compiled makes that many, and almost all of them stay.
    """
    before = gc.get_threshold()
    if request.config.getoption("--cases") == "sample":
        gc.set_threshold(60_000, 20, 20)
    yield
    gc.set_threshold(*before)


@pytest.fixture(autouse=True, scope="module")
def _heap_at_rest() -> None:
    """Spare the garbage collector what there is before a file of tests.

    Compiling leaves millions of objects that stay for good, and to look through them again and
    again took a sixth of a run.
    """
    if any(gc.get_count()[1:]):  # else it was collected a moment ago, or little came since
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def _examples_declare_for_themselves(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("forgotten")
