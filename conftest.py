"""Imports numgrad before pytest looks for examples in it, and forgets what examples declare.

Otherwise pytest imports the folder ``numgrad/jit`` by itself, after the package, and that module
takes the place of the function ``numgrad.jit``.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import numgrad
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS
from numgrad.ops.signatures.declared import DECLARED

pytest_plugins = ["tests.cases"]  # how much of it all a run tests
collect_ignore = ["tests/mutants.py"]  # a tool, which needs one that tests do without


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


@pytest.fixture(autouse=True, scope="module")
def _heap_at_rest() -> None:
    """Spare the garbage collector what there is before a file of tests.

    Compiling leaves millions of objects that stay for good, and to look through them again and
    again took a sixth of a run.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _examples_declare_for_themselves(request: pytest.FixtureRequest) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("forgotten")
