"""The directory of the kernel cache: which files in it are trusted, written, and removed.

Machine code and pickles can do anything, so nothing is loaded that somebody else can have written:
the directory must belong to this user and be writable by nobody else, and so must the file, which
must be a regular one and no link. A checksum, which covers the key, tells damage and files of
other kernels. What fails is ignored, and written anew where that is possible.

Other programs' files may lie in the same directory. Only names that this package makes are counted
and removed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from numgrad.runtime.frames import user_level

__all__ = [
    "KERNEL",
    "SHARED",
    "SOURCE",
    "UNFINISHED",
    "CacheFile",
    "CacheWarning",
    "cache_dir",
    "cache_files",
    "is_abandoned",
    "prune",
    "read_entry",
    "warn",
    "write_entry",
    "write_file",
]

MAGIC = b"numgrad kernel 1\n"
MAX_BYTES = 1 << 29  # beyond this, half of the cache goes
MAX_HOURS_UNFINISHED = 1  # what a killed process left half-written goes after this

KERNEL, SHARED, SOURCE, UNFINISHED = "kernel", "shared", "source", "unfinished"
# name-environment-key.kernel, the same with .shared, and name-hash.py; while being written, more
# letters and .tmp follow.
_OURS = re.compile(
    r"\w+-(?:(?P<environment>[0-9a-f]{8})-[0-9a-f]{24}\.(?P<sort>kernel|shared)|[0-9a-f]{16}\.py)"
    r"(?P<unfinished>\w+\.tmp)?"
)


class CacheWarning(UserWarning):
    """The kernel cache cannot be used as it should; kernels are compiled in every process."""


class CacheFile(NamedTuple):
    """A file of the cache."""

    path: str
    sort: str  #: ``KERNEL``, ``SHARED`` (of kernels), ``SOURCE`` (emitted) or ``UNFINISHED``
    environment: str  #: of a kernel: the hash of versions, processor and options it was made with
    bytes: int
    modified: float  #: when it was written, in seconds since the epoch


class _State:
    """What this process has done already."""

    warned = False
    pruned = False


def cache_dir() -> Path | None:
    """Return the directory of compiled kernels and emitted sources; it need not exist yet.

    Returns
    -------
    pathlib.Path or None
        ``NUMGRAD_CACHE_DIR``, else the platform's place for a user's caches. None if the variable
        is ``off``, or if there is no such place. A relative path is taken from the directory that
        was the current one when it was first asked for.

    Examples
    --------
    >>> directory = cache_dir()
    >>> directory is None or directory.is_absolute()
    True
    """
    setting = os.environ.get("NUMGRAD_CACHE_DIR", "")
    if setting.lower() == "off":
        return None
    try:
        return _absolute(setting) if setting else _user_cache_dir() / "numgrad"
    except (RuntimeError, OSError):  # no home, or no current directory
        return None


@functools.cache
def _absolute(setting: str) -> Path:
    """Return the same path for the same setting, wherever the program goes meanwhile."""
    return Path(setting).expanduser().absolute()


def _user_cache_dir() -> Path:
    """Return the platform's directory for this user's caches."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return xdg if xdg.is_absolute() else Path.home() / ".cache"


def cache_files(directory: Path) -> Iterator[CacheFile]:
    """Yield the files in a directory that are the cache's."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            name = _OURS.fullmatch(entry.name)
            if name is None:
                continue
            with contextlib.suppress(OSError):  # removed by someone else meanwhile
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    environment = name["environment"] or ""
                    sort = UNFINISHED if name["unfinished"] else name["sort"] or SOURCE
                    yield CacheFile(entry.path, sort, environment, status.st_size, status.st_mtime)


def read_entry(path: Path, key: bytes) -> bytes | None:
    """Return what was saved under this key; None if the file is missing or not to be trusted."""
    try:
        if not _is_trusted(path.parent):
            return None
        # Links are not followed; and without O_NONBLOCK, a FIFO here would wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
        # What is looked at and what is read is one file, whatever takes its name meanwhile.
        with _closing(descriptor):
            if not _is_private(os.fstat(descriptor)):
                warn(f"{path} is not a file of this user's alone, so it was not loaded")
                return None
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        warn(f"{path} could not be read ({error})")
        return None
    start = len(MAGIC) + hashlib.sha256().digest_size
    payload = content[start:]
    if content[:start] != MAGIC + hashlib.sha256(key + payload).digest():
        warn(f"{path} is damaged")
        return None
    return payload


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    """Close a file descriptor at the end."""
    try:
        yield
    finally:
        os.close(descriptor)


def _is_trusted(directory: Path) -> bool:
    """Whether nobody but this user can put files into a directory, or take them out.

    Raises
    ------
    OSError
        If it is missing, or no directory.
    """
    status = os.stat(directory)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(f"{directory} is not a directory")
    if _is_users_alone(status):
        return True
    warn(
        f"{directory} is not a directory that belongs to this user and that nobody else can write "
        "to, so it is not used (chmod go-w may help)"
    )
    return False


def _is_private(status: os.stat_result) -> bool:
    """Whether nobody but this user can have written a file."""
    return stat.S_ISREG(status.st_mode) and _is_users_alone(status)


def _is_users_alone(status: os.stat_result) -> bool:
    if os.name == "nt":  # no owners or modes there; the profile's access rules protect it
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def write_entry(path: Path, key: bytes, payload: bytes) -> None:
    """Save what `read_entry` then returns for this key."""
    _prune_once(path)
    write_file(path, MAGIC + hashlib.sha256(key + payload).digest() + payload)


def write_file(path: Path, content: bytes, *, replace: bool = True) -> bool:
    """Write a file so that every reader sees all of it or none, and report whether it is there.

    Parameters
    ----------
    path : pathlib.Path
        The file; its directory is made, private to the user, if it is missing.
    content : bytes
        What to write.
    replace : bool
        Whether to write a file of the same size that exists already.

    Returns
    -------
    bool
        False, after one warning a process, if the file could not be written.
    """
    temporary = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_trusted(path.parent):
            return False
        if not replace:
            with contextlib.suppress(FileNotFoundError):
                if path.lstat().st_size == len(content):
                    return True
        descriptor, temporary = tempfile.mkstemp(prefix=path.name, suffix=".tmp", dir=path.parent)
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError as error:
        if os.name == "nt" and path.exists():
            return True  # there, a file that another process reads can't be replaced
        warn(f"{path} could not be written ({error})")
        return False
    else:
        temporary = None
    finally:
        if temporary is not None:  # also after Ctrl-C
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    return True


def _prune_once(path: Path) -> None:
    """Prune the directory of a kernel that is about to be written; once a process."""
    if not _State.pruned:
        _State.pruned = True
        name = _OURS.fullmatch(path.name)
        prune(path.parent, name["environment"] if name else "")


def prune(directory: Path, environment: str) -> None:
    """Keep the directory from growing for ever, as versions come and go.

    Parameters
    ----------
    directory : pathlib.Path
        The cache.
    environment : str
        The hash that kernels in use have; those of others go first, then the oldest.
    """
    files = sorted(
        cache_files(directory), key=lambda file: (file.environment == environment, file.modified)
    )
    total = sum(file.bytes for file in files)
    goal = MAX_BYTES // 2 if total > MAX_BYTES else total
    for file in files:
        if total > goal or is_abandoned(file):
            with contextlib.suppress(OSError):
                os.unlink(file.path)
                total -= file.bytes


def is_abandoned(file: CacheFile) -> bool:
    """Whether the process that began to write a file must have been killed."""
    return file.sort == UNFINISHED and file.modified < time.time() - 3600 * MAX_HOURS_UNFINISHED


def warn(problem: str) -> None:
    """Say what is wrong with the cache, once a process."""
    if not _State.warned:
        _State.warned = True
        warnings.warn(
            f"numgrad's kernel cache: {problem}. Kernels are compiled where they can't be loaded. "
            "NUMGRAD_CACHE_DIR names another directory, NUMGRAD_CACHE_DIR=off goes without.",
            CacheWarning,
            stacklevel=user_level(),
        )
