"""The disk cache: what is right is found, and nothing else is ever loaded."""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import sys
import tempfile
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numgrad.codegen.compile import cache, cache_files, loaded_code
from numgrad.codegen.compile.cache import cache_info
from numgrad.codegen.compile.cache_files import CacheWarning, cache_dir
from numgrad.codegen.compile.compile import compile_source, kernel
from numgrad.codegen.numba_private import HAS_PIPELINES
from tests.children import ended_well


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


def the_file(directory: Path) -> Path:
    (file,) = directory.glob("*.kernel")
    return file


def test_a_kernel_is_compiled_once_for_each_type() -> None:
    assert double()(2.0) == 4.0
    assert counts() == (0, 1)
    again = double()
    assert again(2.0) == 4.0
    assert counts() == (1, 1)
    assert again(2) == 4
    assert counts() == (1, 2)
    assert again.stats.cache_path == str(cache_dir())


WARM = """
import sys
import numpy as np
from numgrad.codegen.compile.cache import cache_info
from numgrad.codegen.compile.compile import compile_source

fill = compile_source("fill", '''
def fill(x, out):
    for i in range(x.size):
        out[i] = x[i] + 1
''')
x = np.arange(4.0)
fill(x, x)
print(x, cache_info().hits, cache_info().misses, "numba.cpython.numbers" in sys.modules)
"""


def test_another_process_loads_it_and_not_the_compiler() -> None:
    assert ended_well(WARM) == "[1. 2. 3. 4.] 0 1 True\n"
    assert ended_well(WARM) == "[1. 2. 3. 4.] 1 0 False\n"


# Each needs more of Numba's run time than arguments and loops.
DEMANDING = {
    "returns_an_array": ("    return np.arange(x) * 2.0", "print(kernel(3))", "[0. 2. 4.]"),
    "allocates": ("    return np.ones(x).cumsum()[-1]", "print(kernel(5))", "5.0"),
    "returns_a_tuple": ("    return x, 1.5, (x > 2, 'text')", "print(kernel(3))", ""),
    "hashes": ("    return hash((x, 'text'))", "print(kernel(3) == hash((3, 'text')))", ""),
    "calls_libm": (
        "    return math.lgamma(x)",
        "print(abs(kernel(3) - math.lgamma(3)) < 1e-12)",
        "True",
    ),
    "uses_blas": ("    a = np.ones((x, x))\n    return (a @ a)[0, 0]", "print(kernel(3))", "3.0"),
    "raises": (
        "    if x > 2:\n        raise ValueError('too large', x)\n    return x",
        "try:\n    kernel(3)\nexcept ValueError as error:\n    print(error.args)",
        "('too large', 3)",
    ),
}


@pytest.mark.sampled(0.054)
@pytest.mark.parametrize("name", DEMANDING)
def test_a_fresh_process_can_run_what_it_loads(name: str) -> None:
    body, use, expected = DEMANDING[name]
    if name == "uses_blas":
        pytest.importorskip("scipy")
    source = f"import math\nimport numpy as np\ndef {name}(x):\n{body}\n"
    script = (
        "import math\n"
        "from numgrad.codegen.compile.cache import cache_info\n"
        "from numgrad.codegen.compile.compile import compile_source\n"
        f"kernel = compile_source({name!r}, {source!r})\n{use}\n"
    )
    cold = ended_well(script + "print(cache_info()[3:])\n")
    warm = ended_well(script + "print(cache_info()[3:])\n")
    assert cold.endswith("(0, 1)\n")
    assert warm == cold.replace("(0, 1)", "(1, 0)")
    assert expected in warm


def test_an_unknown_symbol_makes_numba_load_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_code, "_provided", set())
    calls = []
    context = types.SimpleNamespace(refresh=lambda: calls.append("refresh"))
    loaded_code.provide(["PyErr_Clear", "NRT_MemInfo_call_dtor"], context)
    assert calls == []
    with pytest.raises(LookupError, match="no_such_symbol"):
        loaded_code.provide(["PyErr_Clear", "no_such_symbol"], context)
    assert calls == ["refresh"]


# --- what must not be trusted --------------------------------------------------------------------

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut in the header": lambda content: content[:10],
    "cut": lambda content: content[: len(content) // 2],
    "longer": lambda content: content + b"x",
    "another format": lambda content: b"something else" + content,
    "a bit in the checksum": lambda content: flip(content, len(cache_files.MAGIC) + 3),
    "a bit in the machine code": lambda content: flip(content, len(content) // 2),
}


def flip(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_compiled_and_written_again(damage: str, directory: Path) -> None:
    double()(2.0)
    file = the_file(directory)
    intact = file.read_bytes()
    file.write_bytes(DAMAGE[damage](intact))
    with pytest.warns(CacheWarning, match="is damaged"):
        assert double()(2.0) == 4.0
    assert counts() == (0, 2)
    assert double()(2.0) == 4.0
    assert counts() == (1, 2)


def test_another_kernels_file_is_damage(directory: Path) -> None:
    double()(2.0)
    file = the_file(directory)
    content = file.read_bytes()
    file.unlink()
    compile_source("triple", "def triple(x):\n    return 3 * x\n")(2.0)
    the_file(directory).write_bytes(content)
    (directory / "saved").write_bytes(content)
    with pytest.warns(CacheWarning, match="is damaged"):
        assert kernel_of_triple()(2.0) == 6.0


def kernel_of_triple() -> Any:
    """Return a new kernel of the source above, as another process would have it."""
    fresh = {"__name__": compile_source.__module__}
    source = "def triple(x):\n    return 3 * x\n"
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    exec(source, fresh)
    fresh["triple"].__qualname__ += f"_{digest}"  # type: ignore[attr-defined]
    return kernel(fresh["triple"])  # type: ignore[arg-type]


class Trap:
    """Pickled: something that shows when it is loaded."""

    sprung = False

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[()]]:
        return (_spring, ())


def _spring() -> None:
    Trap.sprung = True


def set_trap(directory: Path) -> Path:
    """Put a file with a right checksum in the place of a kernel."""
    function = double()
    function(2.0)
    path, key = function._cache._place(*function.overloads, function.targetctx.codegen())
    assert path == the_file(directory)
    payload = pickle.dumps(Trap())
    path.write_bytes(cache_files.MAGIC + hashlib.sha256(key + payload).digest() + payload)
    Trap.sprung = False
    return path


def test_a_file_of_ones_own_is_loaded_and_what_it_raises_is_survived(directory: Path) -> None:
    set_trap(directory)
    with pytest.warns(CacheWarning, match="could not be loaded") as caught:
        assert double()(2.0) == 4.0
    assert caught[0].filename == __file__  # whatever of ours and of Numba's is between
    assert Trap.sprung  # so the tests below can fail
    assert counts() == (0, 2)


@pytest.mark.skipif(os.name == "nt", reason="files have no owner and mode there")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_a_file_that_others_can_write_is_not_loaded(mode: int, directory: Path) -> None:
    set_trap(directory).chmod(mode)
    with pytest.warns(CacheWarning, match="not a file of this user's alone"):
        assert double()(2.0) == 4.0
    assert not Trap.sprung
    assert stat.S_IMODE(the_file(directory).stat().st_mode) == 0o600
    assert double()(2.0) == 4.0
    assert counts() == (1, 2)


@pytest.mark.skipif(os.name == "nt", reason="files have no owner and mode there")
def test_another_users_file_is_not_loaded(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_trap(directory)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(CacheWarning, match="not a directory that belongs to this user"):
        assert double()(2.0) == 4.0
    assert not Trap.sprung


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this platform has no pipes as files")
def test_a_pipe_in_the_place_of_a_file_does_not_block(directory: Path) -> None:
    double()(2.0)
    file = the_file(directory)
    file.unlink()
    os.mkfifo(file, 0o600)
    with pytest.warns(CacheWarning, match="not a file of this user's alone"):
        assert double()(2.0) == 4.0


# --- where nothing can be kept -------------------------------------------------------------------


def no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", str(tmp_path / "file" / "cache"))


def no_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**arguments: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)


def no_replacing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)


def read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.name == "nt" or os.geteuid() == 0:
        pytest.skip("root and Windows write to read-only directories")
    (tmp_path / "cache").mkdir(mode=0o500)


@pytest.mark.parametrize("prevent", [no_directory, no_writing, no_replacing, read_only])
def test_without_a_place_to_write_kernels_work_and_one_warning_says_so(
    prevent: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prevent(tmp_path, monkeypatch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert double()(2.0) == 4.0
            assert compile_source("half", "def half(x):\n    return x / 2\n")(2.0) == 1.0
    assert [warning.category for warning in caught] == [CacheWarning]
    assert "NUMGRAD_CACHE_DIR" in str(caught[0].message)
    assert cache_info().files == 0
    assert not list(tmp_path.glob("cache/*"))  # nothing half-written either


def test_a_read_only_cache_that_is_filled_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double()(2.0)
    no_writing(tmp_path, monkeypatch)
    assert double()(2.0) == 4.0
    assert counts() == (1, 1)


@pytest.mark.parametrize("value", ["off", "OFF"])
def test_the_cache_can_be_turned_off(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", value)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert double()(2.0) == 4.0
    assert cache_info() == (None, 0, 0, 0, 2)
    assert not list(tmp_path.iterdir())


def test_a_dispatchers_own_switch_works(directory: Path) -> None:
    function = double()
    function._cache.disable()
    assert function(2.0) == 4.0
    assert not directory.exists()


# --- the directory -------------------------------------------------------------------------------


def test_the_directory_is_private(directory: Path) -> None:
    double()(2.0)
    assert os.name == "nt" or stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_the_default_is_the_platforms_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", "")  # as good as unset
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_dir() == home / ".cache" / "numgrad"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "numgrad"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, its specification says
    assert cache_dir() == home / ".cache" / "numgrad"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_dir() == home / "Library" / "Caches" / "numgrad"
    monkeypatch.setattr(sys, "platform", "win32")
    assert cache_dir() == home / "AppData" / "Local" / "numgrad"
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_dir() == tmp_path / "local" / "numgrad"


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("NUMGRAD_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "home", homeless)
    assert cache_dir() is None
    assert double()(2.0) == 4.0


def test_the_report_counts_what_is_there(directory: Path) -> None:
    assert cache_info() == (directory, 0, 0, 0, 0)
    compile_source("square", "def square(x):\n    return x * x + 0\n")(2.0)
    (directory / "something else").write_text("not ours")
    info = cache_info()
    assert info.files == 1
    ours = [*directory.glob("square*"), *directory.glob("*.shared")]
    assert info.bytes == sum(file.stat().st_size for file in ours)


FILL = """
import os, sys
from numgrad.codegen.compile.cache import cache_info
from numgrad.codegen.compile.compile import compile_source

ready, go = os.pipe()
children = []
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if not child:
        os.close(go)
        os.read(ready, 1)  # until nobody can write any more: all are there
        kernels = [
            compile_source(f"add{n}", f"def add{n}(x):\\n    return x + {n}\\n")
            for n in range(4)
        ]
        assert [add(0.5) for add in kernels] == [0.5, 1.5, 2.5, 3.5]
        print(cache_info().hits, cache_info().misses)
        sys.exit()
    children.append(child)
os.close(go)
assert not any(os.waitpid(child, 0)[1] for child in children)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_processes_may_fill_the_cache_together(directory: Path) -> None:
    together = [tuple(map(int, line.split())) for line in ended_well(FILL, "3").splitlines()]
    assert [hits + misses for hits, misses in together] == [4] * 3
    assert len(list(directory.glob("*.kernel"))) == 4
    # Their entry for Python is one, where it is not built in.
    assert len(list(directory.glob("*.shared"))) == HAS_PIPELINES
    assert len(list(directory.glob("*.py"))) == 4
    assert len(list(directory.iterdir())) == 8 + HAS_PIPELINES  # nothing is half-written
    assert ended_well(FILL, "1") == "4 0\n"
