"""The directory of the cache: what is trusted in it, what is written, and what is removed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from numgrad.codegen.compile import cache_files
from numgrad.codegen.compile.cache_files import (
    CacheWarning,
    cache_dir,
    prune,
    read_entry,
    write_entry,
    write_file,
)

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
PAYLOAD = bytes(range(256)) * 20
NAME = "add-01234567-0123456789abcdef01234567.kernel"

posix = pytest.mark.skipif(os.name == "nt", reason="files have no owner and mode there")
root = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root gives files to others"
)


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("warned", "pruned"):
        monkeypatch.setattr(cache_files._State, name, False)


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """An entry that was written and can be read."""
    path = tmp_path / "cache" / NAME
    write_entry(path, KEY, PAYLOAD)
    assert read_entry(path, KEY) == PAYLOAD
    return path


def assert_refused(path: Path, words: str) -> None:
    with pytest.warns(CacheWarning, match=words):
        assert read_entry(path, KEY) is None


# --- what is read --------------------------------------------------------------------------------


def test_a_file_cut_at_any_length_is_damaged(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[str] = []
    monkeypatch.setattr(cache_files, "warn", problems.append)
    content = entry.read_bytes()
    lengths = [*range(100), *range(100, len(content), 97), len(content) - 1]
    for length in lengths:
        entry.write_bytes(content[:length])
        assert read_entry(entry, KEY) is None
    assert problems == [f"{entry} is damaged"] * len(lengths)


def test_any_changed_byte_is_damage(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_files, "warn", lambda problem: None)
    content = entry.read_bytes()
    for place in [*range(100), *range(100, len(content), 97)]:
        entry.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        assert read_entry(entry, KEY) is None


def test_what_was_saved_under_another_key_is_damage(entry: Path) -> None:
    with pytest.warns(CacheWarning, match="is damaged"):
        assert read_entry(entry, OTHER_KEY) is None


def test_one_warning_a_process(entry: Path) -> None:
    entry.write_bytes(b"")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert read_entry(entry, KEY) is None
    assert [warning.category for warning in caught] == [CacheWarning]


@posix
def test_a_link_is_not_followed_even_to_a_right_file(entry: Path, tmp_path: Path) -> None:
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    assert_refused(entry, "could not be read")
    write_entry(entry, KEY, PAYLOAD)
    assert not entry.is_symlink()
    assert read_entry(entry, KEY) == PAYLOAD


@posix
def test_writing_does_not_follow_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "cache" / NAME
    path.parent.mkdir(mode=0o700)
    path.symlink_to(victim)
    write_entry(path, KEY, PAYLOAD)
    assert victim.read_text() == "precious"
    assert read_entry(path, KEY) == PAYLOAD


@posix
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_a_directory_that_others_can_write_is_neither_read_nor_written(
    mode: int, entry: Path
) -> None:
    entry.parent.chmod(mode)
    assert_refused(entry, "not a directory that belongs to this user")
    assert not write_file(entry.with_name("new"), b"")
    assert not entry.with_name("new").exists()


@posix
def test_a_directory_that_others_can_only_read_is_fine(entry: Path) -> None:
    entry.parent.chmod(0o755)
    assert read_entry(entry, KEY) == PAYLOAD


@posix
def test_the_directory_may_be_a_link_to_a_private_one(entry: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(entry.parent)
    assert read_entry(tmp_path / "link" / NAME, KEY) == PAYLOAD


@root
def test_another_users_file_and_directory_are_refused(
    entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(entry, 12345, -1)
    assert_refused(entry, "not a file of this user's alone")
    os.chown(entry, 0, -1)
    os.chown(entry.parent, 12345, -1)
    monkeypatch.setattr(cache_files._State, "warned", False)
    assert_refused(entry, "not a directory that belongs to this user")


@posix
def test_a_file_that_is_replaced_while_it_is_opened_is_judged_itself(
    entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = entry.with_name("foreign")
    foreign.write_bytes(entry.read_bytes())
    foreign.chmod(0o666)
    open_file = os.open

    def replace_and_open(path: object, flags: int) -> int:
        os.replace(foreign, entry)
        return open_file(entry, flags)

    monkeypatch.setattr(os, "open", replace_and_open)
    assert_refused(entry, "not a file of this user's alone")


@posix
def test_a_file_that_is_replaced_after_it_was_judged_is_not_what_is_read(
    entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = entry.with_name("foreign")
    foreign.write_bytes(b"foreign")
    judge = cache_files._is_private

    def judge_and_replace(status: os.stat_result) -> bool:
        os.replace(foreign, entry)
        return judge(status)

    monkeypatch.setattr(cache_files, "_is_private", judge_and_replace)
    assert read_entry(entry, KEY) == PAYLOAD


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="counts open files in /proc")
def test_a_directory_in_the_place_of_a_file_is_refused_and_nothing_stays_open(
    entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_files, "warn", lambda problem: None)
    entry.unlink()
    entry.mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        assert read_entry(entry, KEY) is None
        write_entry(entry, KEY, PAYLOAD)
    assert len(os.listdir("/proc/self/fd")) == before
    assert [path.name for path in entry.parent.iterdir()] == [NAME]


# --- what is written -----------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_what_is_made_is_private_under_any_umask(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        write_entry(tmp_path / "cache" / NAME, KEY, PAYLOAD)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "cache" / NAME).stat().st_mode) == 0o600
    assert read_entry(tmp_path / "cache" / NAME, KEY) == PAYLOAD


# It needs nothing of numgrad, and processes start a second sooner without.
WITH_THE_MODULE_ALONE = {**os.environ, "PYTHONPATH": str(Path(cache_files.__file__).parent)}
FULL_DISK = """
import resource, sys, warnings
from pathlib import Path
from cache_files import read_entry, write_entry
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        write_entry(path, b"k" * 32, b"x" * 100_000)
assert len(caught) == 1 and "could not be written" in str(caught[0].message), caught
assert list(path.parent.iterdir()) == []
assert read_entry(path, b"k" * 32) is None
"""


@posix
def test_a_file_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "cache" / NAME)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=WITH_THE_MODULE_ALONE
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(source: object, target: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(tmp_path / "cache" / NAME, b"content")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_file_in_the_place_of_the_directory_is_one_warning(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("mine")
    path = tmp_path / "cache" / NAME
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert read_entry(path, KEY) is None
        write_entry(path, KEY, PAYLOAD)
        assert not write_file(path, b"", replace=False)
    assert [warning.category for warning in caught] == [CacheWarning]
    assert (tmp_path / "cache").read_text() == "mine"


READERS_AND_WRITERS = """
import sys, warnings
from pathlib import Path
from cache_files import read_entry, write_entry
warnings.simplefilter("error")
path, seed = Path(sys.argv[1]), int(sys.argv[2])
payload = b"the same in every process" * 4000
for n in range(50):
    if (n + seed) % 2:
        write_entry(path, b"k" * 32, payload)
    found = read_entry(path, b"k" * 32)
    assert found in (None, payload)
assert found == payload
"""


@pytest.mark.skipif(os.name == "nt", reason="a file that is open can't be replaced there")
def test_processes_that_write_one_file_at_once_never_show_half_of_it(tmp_path: Path) -> None:
    path = tmp_path / "cache" / NAME
    together = [
        subprocess.Popen(
            [sys.executable, "-c", READERS_AND_WRITERS, str(path), str(seed)],
            stderr=subprocess.PIPE,
            text=True,
            env=WITH_THE_MODULE_ALONE,
        )
        for seed in range(3)
    ]
    for process in together:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert [file.name for file in path.parent.iterdir()] == [NAME]


# --- where it is ---------------------------------------------------------------------------------


def test_a_relative_directory_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"kernels-{tmp_path.name}"  # asked for once a process, so no other test may ask
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", name)
    assert cache_dir() == tmp_path / name
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cache_dir() == tmp_path / name


def test_a_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("NUMGRAD_CACHE_DIR", f"~/{tmp_path.name}")
    assert cache_dir() == tmp_path / tmp_path.name


# --- what goes -----------------------------------------------------------------------------------


def kernel_name(number: int, environment: str = "01234567") -> str:
    return f"add-{environment}-{number:024x}.kernel"


def make(directory: Path, name: str, age: float, size: int = 100) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(b"x" * size)
    os.utime(directory / name, (time.time() - age,) * 2)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_the_oldest_half_goes_when_the_cache_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age in range(10):
        make(tmp_path, kernel_name(age), 1000 * (age + 1))
    monkeypatch.setattr(cache_files, "MAX_BYTES", 900)
    prune(tmp_path, "01234567")
    assert names(tmp_path) == {kernel_name(age) for age in range(4)}


def test_kernels_of_other_versions_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        make(tmp_path, kernel_name(number, "01234567"), 5000 - number)
        make(tmp_path, kernel_name(number, "76543210"), 1000)
    monkeypatch.setattr(cache_files, "MAX_BYTES", 900)
    prune(tmp_path, "01234567")
    assert names(tmp_path) == {kernel_name(number) for number in range(1, 5)}


def test_what_a_killed_process_left_goes_and_what_another_is_writing_stays(tmp_path: Path) -> None:
    make(tmp_path, kernel_name(1) + "abc_12.tmp", 4000)
    make(tmp_path, kernel_name(2) + "abc_12.tmp", 10)
    make(tmp_path, kernel_name(3), 4000)
    prune(tmp_path, "01234567")
    assert names(tmp_path) == {kernel_name(2) + "abc_12.tmp", kernel_name(3)}


def test_what_others_keep_in_the_directory_is_never_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = {"script.py", "data.tmp", "notes", "model.kernel", "loop-0123.py", "a b.kernel.tmp"}
    for name in theirs:
        make(tmp_path, name, 10_000, 1000)
    for number in range(4):
        make(tmp_path, kernel_name(number), 10, 1000)
    monkeypatch.setattr(cache_files, "MAX_BYTES", 3000)
    prune(tmp_path, "01234567")
    assert theirs < names(tmp_path)
    assert len(names(tmp_path)) == len(theirs) + 1
