"""``python -m numgrad cache``: look at the kernel cache, fill it ahead of time, empty it."""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from numgrad.base.progress import Progress, duration
from numgrad.codegen.compile.cache import counts
from numgrad.codegen.compile.cache_files import (
    KERNEL,
    SOURCE,
    UNFINISHED,
    CacheFile,
    cache_dir,
    cache_files,
    is_abandoned,
    write_file,
)
from numgrad.codegen.compile.cache_key import environment, versions
from numgrad.codegen.numba_private import cpu_target
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.later import load_all
from numgrad.runtime.threads import get_num_threads
from numgrad.tools.cache_warming import Job, Warmed, warm

__all__ = ["add_cache_command"]

DTYPES = ("float32", "float64", "complex64", "complex128", "int32", "int64", "bool")
NO_CACHE = "there is no kernel cache: NUMGRAD_CACHE_DIR says off, or you have no home directory"
INTERRUPTED = 130  # what shells make of Ctrl-C


def add_cache_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``cache`` and what comes after it to the commands of a program.

    The parsed arguments then have ``run_cache``: called with them, it returns the exit code.
    """
    summary = "look at the kernel cache, fill it, empty it"
    parser = commands.add_parser("cache", help=summary, description=summary)
    actions = parser.add_subparsers(title="actions", metavar="action", required=True)

    summary = "say where the cache is, what is in it, and what its kernels depend on"
    info = actions.add_parser("info", help=summary, description=summary)
    info.add_argument("--kernels", action="store_true", help="list what the kernels compute")
    info.set_defaults(run_cache=show_info)

    summary = "compile the kernels of all operations, so that no program has to wait for it"
    fill = actions.add_parser("warm", help=summary, description=summary)
    fill.add_argument("operation", nargs="*", help="only these operations of the catalogue")
    fill.add_argument(
        "--dtype",
        nargs="+",
        choices=DTYPES,
        default=["float32", "float64"],
        help="on tensors of these dtypes (default: float32 float64)",
    )
    fill.add_argument(
        "--jobs",
        type=_positive,
        default=None,
        metavar="N",
        help="in this many processes (default: one for each core that may be used)",
    )
    fill.set_defaults(run_cache=warm_cache, fail=fill.error)

    summary = "remove the kernels and sources that numgrad wrote, and nothing else"
    clear = actions.add_parser("clear", help=summary, description=summary)
    clear.set_defaults(run_cache=clear_cache)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a positive integer, but got {text!r}")
    return int(text)


# --- info ----------------------------------------------------------------------------------------


def show_info(options: argparse.Namespace) -> int:
    """Print what there is to know about the cache."""
    directory = cache_dir()
    if directory is None:
        print(NO_CACHE)
        return 0
    codegen = cpu_target.target_context.codegen()
    current = (environment(codegen) or b"").hex()[:8]
    files = list(cache_files(directory))
    kernels = [file for file in files if file.sort == KERNEL]
    usable = [file for file in kernels if file.environment == current]
    _show("path", directory)
    _show("kernels", f"{_amount(kernels)}, of which {_amount(usable)} for this environment")
    _show("sources", _amount([file for file in files if file.sort == SOURCE]))
    _show("files", f"{len(files)}, {_size(sum(file.bytes for file in files))}")
    _show("hits, misses", "{}, {} in this process".format(*counts()))
    _show("environment", current)
    for name, version in versions().items():
        _show(f"  {name}", " ".join(version.split()))
    triple, processor, features = codegen.magic_tuple()
    enabled = [feature for feature in features.split(",") if feature.startswith("+")]
    _show("  processor", f"{processor} ({triple}), {len(enabled)} features")
    if options.kernels:
        _list_kernels(usable, [file for file in files if file.sort == SOURCE])
    return 0


def _list_kernels(kernels: Sequence[CacheFile], sources: Sequence[CacheFile]) -> None:
    """Print the kernels by name, and what the emitted ones among them say they compute."""
    print("\nkernels of this environment, by function:")
    names = Counter(Path(file.path).name.split("-")[0] for file in kernels)
    for name, count in sorted(names.items(), key=lambda item: (-item[1], item[0])):
        print(f"{count:6} {name}")
    print("\nemitted sources:")
    titles = []
    for file in sources:
        with contextlib.suppress(OSError, SyntaxError, UnicodeDecodeError):
            tree = ast.parse(Path(file.path).read_text(encoding="utf-8"))
            titles.append(ast.get_docstring(tree) or Path(file.path).name)
    for title in sorted(titles):
        print(f"       {title}")


def _show(label: str, value: object) -> None:
    print(f"{label:<14} {value}")


def _amount(files: Sequence[CacheFile]) -> str:
    return f"{len(files)} ({_size(sum(file.bytes for file in files))})"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


# --- warm ----------------------------------------------------------------------------------------


def warm_cache(options: argparse.Namespace) -> int:
    """Compile what is asked for, and return the exit code: 1 if any of it failed."""
    load_all()
    unknown = [name for name in options.operation if name not in CATALOGUE]
    if unknown:
        options.fail(f"the catalogue has no operation called {', '.join(unknown)}")
    directory = cache_dir()
    problem = _problem(directory)
    if problem:
        print(problem, file=sys.stderr)
        return 1
    names = options.operation or list(CATALOGUE)
    jobs = [Job(name, dtype) for dtype in dict.fromkeys(options.dtype) for name in names]
    processes = min(options.jobs or get_num_threads(), len(jobs))
    started = time.monotonic()
    done: list[Warmed] = []
    code = 0
    try:
        with Progress(len(jobs)) as progress:
            for warmed in warm(jobs, processes):
                done.append(warmed)
                progress.step(str(warmed.job))
    except KeyboardInterrupt:
        print("interrupted: what was compiled is kept, and the next run goes on there")
        code = INTERRUPTED
    _summarise(done, duration(time.monotonic() - started))
    print(f"the cache is {directory}")
    return code or int(any(warmed.failure for warmed in done))


def _problem(directory: Path | None) -> str:
    """Return why warming would be in vain; nothing if it isn't."""
    if directory is None:
        return NO_CACHE
    trial = directory / f"trial-{os.getpid():016x}.py"
    if not write_file(trial, b""):
        return f"nothing can be written to {directory}"
    with contextlib.suppress(OSError):
        trial.unlink()
    return ""


def _summarise(done: Sequence[Warmed], took: str) -> None:
    """Print what became of the jobs."""
    compiled = sum(warmed.compiled for warmed in done)
    loaded = sum(warmed.loaded for warmed in done)
    print(f"{compiled} kernels compiled, {loaded} found in the cache, in {took}")
    refused = sum(warmed.refused for warmed in done)
    if refused:
        print(f"{refused} of {sum(w.calls for w in done)} calls are not defined for their dtype")
    for warmed in done:
        if warmed.failure:
            print(f"{warmed.job} failed: {warmed.failure}", file=sys.stderr)


# --- clear ---------------------------------------------------------------------------------------


def clear_cache(options: argparse.Namespace) -> int:
    """Remove the cache's files, and return the exit code: 1 if one of them can't be removed."""
    directory = cache_dir()
    if directory is None:
        print(NO_CACHE)
        return 0
    removed = []
    problems = []
    for file in list(cache_files(directory)):
        if file.sort == UNFINISHED and not is_abandoned(file):
            continue  # another process is writing it
        try:
            os.unlink(file.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(str(error))
        else:
            removed.append(file)
    print(f"{len(removed)} files removed from {directory}, {_size(sum(f.bytes for f in removed))}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))
