"""The key of a compiled kernel: all that its machine code depends on, and nothing that changes."""

from __future__ import annotations

import dis
import importlib.resources
import math
import sys
import types
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit, vectorize

from numgrad.codegen.compile import cache, cache_files, cache_key
from numgrad.codegen.compile.cache import cache_info
from numgrad.codegen.compile.compile import compile_source, kernel
from numgrad.codegen.llvm.map_ir import Map
from numgrad.codegen.llvm.scalar_ir import branch_free
from numgrad.kernels.reduce import scans


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a process that has not used it."""
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("hits", "misses"):
        monkeypatch.setattr(cache._Counts, name, 0)
    for name in ("warned", "pruned"):
        monkeypatch.setattr(cache_files._State, name, False)
    return tmp_path / "cache"


def double() -> Any:
    """Return a new kernel, always of the same function."""

    def double(x):
        return x + x

    return kernel(double)


def counts() -> tuple[int, int]:
    return cache_info()[3:]


Point = namedtuple("Point", "x y")
Size = namedtuple("Size", "y x")
ADD = eval("lambda x, y: x + y")
MULTIPLY = eval("lambda x, y: x * y")


def make_module(**values: Any) -> types.ModuleType:
    module = types.ModuleType("settings")
    vars(module).update(values)
    return module


CONSTANT = 2.0
TABLE = np.arange(3)


def lines(function: Callable[..., Any]) -> list[str]:
    return list(cache_key.describe(function))


def closure(value: Any) -> Callable[..., Any]:
    def function(x):
        # Numba would freeze what these names mean in a module.
        return x, value, value.RATE, value.part.RATE

    return function


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        (0.0, -0.0),
        (1.0, np.float64(1)),
        (True, 1),
        ("a", b"a"),
        ((1, 2), (1, (2,))),
        (np.arange(3), np.arange(3) + 1),
        (np.arange(3), np.arange(3).astype(np.int32)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.dtype("f4"), np.dtype("f8")),
        (math.exp, math.log),
        (math, np),
        (njit(lambda x: x + 1), njit(lambda x: x + 2)),
        (njit(closure(1)), njit(closure(2))),
        (lambda x: x + 1, lambda x: x + 2),
        (Point(1, 2), Size(1, 2)),
        (Point(1, 2), (1, 2)),
        (njit(ADD), njit(fastmath=True)(ADD)),
        (vectorize(ADD), vectorize(MULTIPLY)),
        (make_module(RATE=2.0), make_module(RATE=3.0)),
        (make_module(part=make_module(RATE=2.0)), make_module(part=make_module(RATE=3.0))),
    ],
)
def test_values_that_a_kernel_uses_are_in_its_key(one: Any, other: Any) -> None:
    assert lines(closure(one)) != lines(closure(other))
    assert lines(closure(one)) == lines(closure(one))


def test_a_changed_global_is_another_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def scale(x):
        return x * CONSTANT + TABLE[1]

    assert kernel(scale)(1.0) == 3.0
    monkeypatch.setattr(sys.modules[__name__], "CONSTANT", 5.0)
    assert kernel(scale)(1.0) == 6.0
    monkeypatch.setattr(sys.modules[__name__], "TABLE", np.arange(3) * 2)
    assert kernel(scale)(1.0) == 7.0
    assert counts() == (0, 3)


def test_a_changed_helper_is_another_kernel() -> None:
    def using(constant):
        @kernel
        def helper(x):
            return x * constant

        @kernel
        def middle(x):
            return helper(x)

        @kernel
        def outer(x):
            return middle(x)

        return outer

    assert using(2.0)(1.0) == 2.0
    assert using(3.0)(1.0) == 3.0
    assert using(2.0)(1.0) == 2.0
    assert counts() == (1, 6)  # the last is loaded whole; its helpers are not needed


def test_kernels_that_call_themselves_or_each_other_are_described() -> None:
    @kernel
    def factorial(n):
        if n <= 1:
            return 1
        return n * factorial(n - 1)

    assert factorial(5) == 120
    assert counts() == (0, 1)


def test_what_cannot_be_described_is_not_cached(directory: Path) -> None:
    class Thing:
        pass

    with pytest.raises(cache_key.Indescribable):
        lines(closure(Thing()))

    @kernel
    def apply(function, x):
        return function(x)

    assert apply(double(), 2.0) == 4.0  # the type of a function as argument holds its address
    assert not list(directory.glob("apply*"))


def test_defaults_and_line_numbers_are_in_the_key() -> None:
    def parse(source: str) -> Callable[..., Any]:
        namespace: dict[str, Any] = {"__name__": "m"}
        exec(source, namespace)
        return namespace["f"]

    described = [
        lines(parse(source))
        for source in (
            "def f(x, y=1): return x",
            "def f(x, y=2): return x",
            "\ndef f(x, y=1): return x",
            "def f(x, z=1): return x",
            "def f(x, y=1): return y",
        )
    ]
    assert all(described.count(one) == 1 for one in described)


def test_a_comment_in_an_emitted_source_is_another_kernel() -> None:
    source = "def same(x):\n    return x  # {}\n"
    first, second = (compile_source("same", source.format(text)) for text in "ab")
    assert lines(first.py_func) != lines(second.py_func)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in the place of ours, whose source the key covers."""
    package = tmp_path / "package"
    for folder in cache_key.FOLDERS:
        (package / folder).mkdir(parents=True)
        (package / folder / "scalar.py").write_text("one")
        (package / folder / "loops.py").write_text("two")
    monkeypatch.setattr(importlib.resources, "files", lambda name: package)
    return package


def toolchain() -> bytes | None:
    cache_key.toolchain.cache_clear()
    try:
        return cache_key.toolchain()
    finally:
        cache_key.toolchain.cache_clear()


@pytest.mark.parametrize("folder", cache_key.FOLDERS)
def test_any_change_of_the_package_is_in_the_key(package: Path, folder: str) -> None:
    seen = {toolchain()}
    inside = package / folder
    (inside / "notes.txt").write_text("no source")
    assert toolchain() in seen
    (inside / "scalar.py").write_text("One")
    seen.add(toolchain())
    (inside / "scalar.py").rename(inside / "scalars.py")
    seen.add(toolchain())
    (inside / "more.py").touch()
    seen.add(toolchain())
    assert len(seen) == 4


def test_a_package_without_source_has_no_cache(package: Path, directory: Path) -> None:
    for file in package.rglob("*.py"):
        file.unlink()
    cache_key.toolchain.cache_clear()
    try:
        assert double()(2.0) == 4.0
    finally:
        cache_key.toolchain.cache_clear()
    assert not directory.exists()


@pytest.mark.parametrize(
    "name",
    ["numba.__version__", "llvmlite.__version__", "numpy.__version__", "sys.version"],
)
def test_versions_are_in_the_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = toolchain()
    monkeypatch.setattr(name, "another")
    assert toolchain() != before


def test_numgrads_version_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = toolchain()
    monkeypatch.setattr(sys.modules["numgrad"], "__version__", "another", raising=False)
    assert toolchain() != before


def test_processor_and_compiler_options_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    store = double()._cache

    def place(*processor: str) -> Any:
        codegen = type("Codegen", (), {"magic_tuple": lambda self: processor})()
        return store._place("(float64,)", codegen)

    places = [place("triple", "skylake", "+avx2"), place("triple", "skylake", "+avx512f")]
    places.append(place("triple", "haswell", "+avx2"))
    for option in cache_key.CODEGEN_OPTIONS:
        with monkeypatch.context() as patch:
            patch.setattr(cache_key.config, option, "another")
            places.append(place("triple", "skylake", "+avx2"))
    assert len(set(places)) == len(places)
    assert len({path.name for path, _ in places}) == len(places)
    assert place("triple", "skylake", "+avx2") == places[0]


def test_which_function_a_name_means_is_in_the_key() -> None:
    def use(first, second, third):
        def function(x):
            return first(x), second(x), third(x)

        return function

    one, other = (eval(f"lambda x: x + {n}") for n in range(2))
    described = [lines(use(one, other, third)) for third in (one, other)]
    described += [lines(use(other, one, third)) for third in (one, other)]
    assert all(described.count(each) == 1 for each in described)
    assert lines(use(one, other, one)) == described[0]


def test_defaults_are_compared_by_all_their_elements() -> None:
    def defaulting(value):
        def function(x, y=value):
            return x + y[0]

        return function

    one, other = np.zeros(5000), np.zeros(5000)
    other[2500] = 1.0  # which the array's repr leaves out
    assert lines(defaulting(one)) != lines(defaulting(other))


def test_a_variable_that_is_not_bound_yet_cannot_be_described() -> None:
    def function(x):
        return later

    described = cache_key.describe(function)
    with pytest.raises(cache_key.Indescribable):
        list(described)
    later = 1
    assert any("int 1" in line for line in lines(function))


def test_modules_that_refer_to_each_other_are_described() -> None:
    module = make_module(RATE=1.0)
    module.value = module  # type: ignore[attr-defined]
    assert lines(closure(module)) == lines(closure(module))


def test_global_names_are_those_that_dis_finds() -> None:
    # More names than one byte counts, some of them attributes, and one in a nested function.
    namespace: dict[str, Any] = {}
    lines = [f"    x.attribute{n} + name{n}" for n in range(700)]
    exec("\n".join(["def function(x):", *lines, "    return lambda: x.inner(y)"]), namespace)
    codes = [namespace["function"].__code__]
    codes += [code for code in codes[0].co_consts if isinstance(code, types.CodeType)]
    codes += [cache_key.describe.__code__, scans.share_scan.__code__]
    for code in codes:
        found = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
        assert cache_key.global_names(code) == sorted(found)
    assert len(cache_key.global_names(codes[0])) == 700


def test_an_attribute_is_not_taken_for_the_global_of_that_name() -> None:
    # np.empty is in this function, and one that is called empty beside it.
    namespace: dict[str, Any] = {"np": np, "empty": ADD, "__name__": "elsewhere"}
    exec("def function(x):\n    return np.empty(x.size)", namespace)
    assert not any("empty = " in line for line in lines(namespace["function"]))
    exec("def function(x):\n    return empty(np.size(x), x)", namespace)
    assert any("empty = " in line for line in lines(namespace["function"]))


def test_what_a_straight_function_of_a_user_does_is_part_of_the_key() -> None:
    def calls(value: Any) -> Callable[..., Any]:
        return lambda x: value(x)

    assert lines(calls(branch_free(ADD))) == lines(calls(branch_free(ADD)))
    assert lines(calls(branch_free(ADD))) != lines(calls(branch_free(MULTIPLY)))
    assert lines(calls(Map(ADD))) != lines(calls(Map(MULTIPLY)))
    assert lines(calls(Map(ADD))) != lines(calls(branch_free(ADD)))
