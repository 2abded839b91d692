"""How functions and emitted sources become kernels."""

from __future__ import annotations

import inspect
import linecache
import math
import os
import pickle
import textwrap
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest

from numgrad.codegen.compile.compile import compile_source, kernel
from numgrad.codegen.compile.pipelines import shared
from tests.children import ended_well

SQUARE = "def square(x):\n    return x * x\n"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_kernel_compiles_on_its_first_call() -> None:
    square = compile_source("square", SQUARE)
    assert not square.overloads
    assert square(3.0) == 9.0
    assert square(np.float32(3)) == 9.0
    assert len(square.overloads) == 2


def test_a_kernel_has_numpys_error_model_and_no_fast_math() -> None:
    @kernel
    def divide(x, y):
        return x / y

    assert divide(1.0, 0.0) == math.inf
    assert math.isnan(divide(0.0, 0.0))

    @kernel
    def cancel(x, y):
        return (x + y) - x

    assert cancel(1e16, 1.0) == 0.0
    assert " fast " not in cancel.inspect_llvm(cancel.signatures[0])


def test_a_kernel_releases_the_gil() -> None:
    square = compile_source("square", SQUARE)
    square(3.0)
    text = square.inspect_llvm(square.signatures[0])
    entries = [code for name, code in shared.known.items() if f"@{name}(" in text]
    assert "@PyEval_SaveThread()" in text or "PyEval_SaveThread" in entries[0]


def test_the_same_source_is_the_same_kernel() -> None:
    square = compile_source("square", SQUARE)
    assert compile_source("square", SQUARE) is square
    assert compile_source("square", SQUARE + "\n") is not square


def test_threads_that_ask_for_one_source_get_one_kernel() -> None:
    source = "def cube(x):\n    return x * x * x\n"
    barrier = threading.Barrier(6, timeout=30)
    kernels: list[object] = []

    def user() -> None:
        barrier.wait()
        cube = compile_source("cube", source)
        assert cube(2.0) == 8.0
        kernels.append(cube)

    users = [threading.Thread(target=user) for _ in range(6)]
    for thread in users:
        thread.start()
    for thread in users:
        thread.join(60)
    assert len(kernels) == 6
    assert len(set(map(id, kernels))) == 1


def test_the_source_is_in_a_readable_file(directory: Path) -> None:
    source = f"{SQUARE}# of {directory}\n"  # the same source is compiled once a process
    square = compile_source("square", source)
    file = Path(square.py_func.__code__.co_filename)
    assert file.parent == directory
    assert file.name.startswith("square-")
    assert file.read_text() == source
    assert inspect.getsource(square.py_func).strip() == SQUARE.strip()


@pytest.mark.parametrize("place", ["usual", "off", "unwritable", "removed"])
def test_tracebacks_show_the_emitted_lines(
    place: str, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "off":
        monkeypatch.setenv("NUMGRAD_CACHE_DIR", "off")
    elif place == "unwritable":
        monkeypatch.setattr("numgrad.codegen.compile.cache_files._State.warned", True)
        (tmp_path / "file").touch()
        monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "file" / "cache"))
    source = f"# {place}\ndef fail(x):\n    y = x / 0  # from div\n    return y\n"
    fail = compile_source("fail", source)
    if place == "removed":
        for file in directory.iterdir():
            file.unlink()
    linecache.checkcache()
    with pytest.raises(ZeroDivisionError) as caught:
        fail.py_func(1)
    lines = "".join(traceback.format_exception(caught.value))
    assert "y = x / 0  # from div" in lines
    assert inspect.getsource(fail.py_func) in source
    assert fail(1.0) == math.inf


def test_an_emitted_source_may_import_and_have_kernels_of_its_own() -> None:
    source = """
    from math import exp
    from numgrad.codegen.compile.compile import kernel

    @kernel
    def helper(x):
        return exp(x) * {factor}

    def scaled(x):
        return helper(x) + {factor}
    """
    for factor in (2.0, 3.0):  # helpers of the same name
        scaled = compile_source("scaled", textwrap.dedent(source.format(factor=factor)))
        assert scaled(0.0) == 2 * factor


def test_a_source_without_the_function_is_an_error_that_shows_it() -> None:
    with pytest.raises(ValueError, match=r"no function 'cube'(?s:.)*def square"):
        compile_source("cube", SQUARE)
    with pytest.raises(ValueError, match="no function 'square'"):
        compile_source("square", "square = 3\n")


def test_a_source_that_is_not_python_is_an_error_that_shows_the_line() -> None:
    with pytest.raises(SyntaxError) as caught:
        compile_source("broken", "def broken(x):\n    return x +\n")
    assert "return x +" in "".join(traceback.format_exception(caught.value))


def test_kernels_call_kernels_and_users_call_them() -> None:
    from numba import njit

    square = compile_source("square", SQUARE)

    @kernel
    def fourth(x):
        return square(square(x))

    @njit
    def users(x):
        return fourth(x) + square(x)

    assert users(2.0) == 20.0


def test_importing_loads_no_compiler_and_touches_no_file(directory: Path) -> None:
    script = """
    import sys
    from numgrad.codegen.compile.compile import kernel

    @kernel
    def square(x):
        return x * x

    # What Numba imports before it compiles anything.
    print("numba.np.arraymath" in sys.modules, "scipy.linalg" in sys.modules)
    """
    assert ended_well(script, fresh=True) == "False False\n"
    assert not directory.exists()


def test_a_kernel_pickles_with_its_code() -> None:
    square = compile_source("square", SQUARE)
    data = pickle.dumps(square)
    assert pickle.loads(data)(3.0) == 9.0
    script = f"import pickle\nprint(pickle.loads({data!r})(3.0))"
    assert ended_well(script) == "9.0\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_a_child_forked_while_another_thread_compiles_can_compile() -> None:
    script = """
    import os, signal, threading, time
    from numba.core.compiler_lock import global_compiler_lock
    from numgrad.codegen.compile.compile import compile_source

    compiling = threading.Event()

    def compile():  # for a while
        with global_compiler_lock:
            compiling.set()
            time.sleep(0.3)

    thread = threading.Thread(target=compile)
    thread.start()
    compiling.wait(30)
    pid = os.fork()
    square = compile_source("square", "def square(x):\\n    return x * x\\n")
    if pid == 0:
        signal.alarm(60)
        os._exit(0 if square(3.0) == 9.0 else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), square(3.0))
    thread.join()
    """
    assert ended_well(script) == "0 9.0\n"
