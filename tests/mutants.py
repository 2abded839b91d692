"""Plant small defects in the package, one at a time, and say which of them no test notices.

::

    pip install cosmic-ray
    python -m tests.mutants numgrad/graph --tests tests/graph tests/autograd tests --sample 100

has cosmic-ray change an operator, a comparison, a number or a branch in a copy of the tree, and
runs those tests until one fails. What survives is printed as a diff: either a test is missing, or
the change changes nothing that can be seen.

First the tests run once as they are, and it is noted which lines each of them reaches. Then a
defect costs what the tests that reach its statement cost, the quickest first, one folder or file of
``--tests`` after the other, those first that lie as the defect does: where ``tests`` is the last of
them, what survives has survived the whole suite. NumPy, Numba and pytest are imported once: each
run is a fork. Where PyTorch is missing, its recorded answers stand for it. ``--notes`` names a file
that spares the first run of tests that are noted there (delete it after a change to the modules).
After tests were written, ``--anew`` notes their files again, and ``--only`` plants those defects
again that nothing noticed.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import difflib
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

import hypothesis  # noqa: F401 - imported once, before the forks
import numba  # noqa: F401
import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).resolve().parents[1]
# `|` stands between types almost everywhere, where nothing can be noticed.
SKIPPED = ("core/ReplaceBinaryOperator_BitOr_", "core/RemoveDecorator")
TIMED_OUT = -1
CASES = ["--cases=all"]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What a test has reached: each statement as its file and its line.
REACHED: set[str] = set()
MARK = "_statements_reached"
# No test takes as long, so that a defect has made a loop endless where one does.
ENDLESS = 200


class Mutant(NamedTuple):
    """A defect: the how-manyth place where an operator of cosmic-ray can change a file."""

    module: str
    operator: str
    occurrence: int
    line: int


class Notes:
    """How long tests take that have passed, and which of them reach a statement."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.seconds: dict[str, float] = {}
        self.reached_by: dict[str, list[str]] = {}
        self.imported: set[str] = set()

    def add(self, other: Notes) -> None:
        """Take in what other tests, or the same ones later, have reached."""
        for statement, names in self.reached_by.items():
            self.reached_by[statement] = [each for each in names if each not in other.seconds]
        for statement, names in other.reached_by.items():
            self.reached_by.setdefault(statement, []).extend(names)
        self.seconds.update(other.seconds)
        self.imported |= other.imported
        self.folders += other.folders

    def reaching(self, statement: str | None) -> list[str]:
        """Return the tests that reach a statement, the quickest first; all, if imports reach it.

        What an import leaves behind, any test may meet.
        """
        found = sorted(self.reached_by.get(statement or "", []), key=self.seconds.__getitem__)
        if statement is None or statement in self.imported:
            others = self.seconds.keys() - set(found)
            found += sorted(others, key=self.seconds.__getitem__)
        return found


class Noting:
    """A plugin of pytest that notes, by test, how long it takes and which statements it reaches."""

    def __init__(self) -> None:
        self.notes = Notes()

    def pytest_collection_finish(self) -> None:
        self.notes.imported = REACHED.copy()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        REACHED.clear()
        start = time.perf_counter()
        yield  # what fails or is skipped goes no further
        self.notes.seconds[item.nodeid] = time.perf_counter() - start
        for statement in REACHED:
            self.notes.reached_by.setdefault(statement, []).append(item.nodeid)


def marked(source: str, module: str) -> str:
    """Return a file that notes in `REACHED` which statements of functions run."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    for node in {inner: None for each in functions for inner in ast.walk(each)}:
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                marks = [
                    ast.parse(f"{MARK}.add({f'{module}:{each.lineno}'!r})").body[0] for each in body
                ]
                both = [one for pair in zip(marks, body, strict=True) for one in pair]
                documented = isinstance(node, FUNCTIONS) and ast.get_docstring(node, clean=False)
                setattr(node, field, both[1:] if documented else both)
    first = [isinstance(each, (ast.Expr, ast.ImportFrom)) for each in tree.body]
    nobody = f"{MARK} = getattr(__import__('builtins'), '{MARK}', set())"  # in other processes
    tree.body.insert([*first, False].index(False), ast.parse(nobody).body[0])
    return ast.unparse(tree)


class Chosen:
    """A plugin of pytest that keeps some of the tests, in the order that is given.

    It writes the name of one that fails to a file.
    """

    def __init__(self, names: list[str], failed: Path) -> None:
        self.order = {name: at for at, name in enumerate(names)}
        self.failed = failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.write_text(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.order]
        items.sort(key=lambda item: self.order[item.nodeid])


def forked(work: Callable[[], int], output: Path, timeout: float) -> int:
    """Return the exit code of `work`, done in a process of its own and its group."""
    child = os.fork()
    if not child:
        code = 70
        try:
            os.setsid()
            for number in (1, 2):
                os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TIMED_OUT


def run_pytest(plugin: object, *arguments: str) -> int:
    """Run pytest without rewritten assertions, which would be compiled anew in every fork."""
    options = ["-q", "--assert=plain", *CASES, "-p", "no:cacheprovider"]
    options += ["-o", f"faulthandler_timeout={ENDLESS}", "-o", "faulthandler_exit_on_timeout=true"]
    return int(pytest.main([*options, *arguments], plugins=[plugin]))


def copy_of_the_tree(folder: Path) -> Path:
    """Copy what git does not ignore, so that defects are planted there and not here."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, target)
    return folder


def possible(modules: list[str]) -> list[Mutant]:
    """Return all defects that cosmic-ray knows for some files."""
    operators = [name for name in operator_names() if not name.startswith(SKIPPED)]
    found = []
    for module in modules:
        nodes = list(ast_nodes(get_ast(Path(module).read_text())))
        for name in sorted(operators):
            operator = get_operator(name)
            if operator.arguments():
                continue
            places = [at for node in nodes for at in operator().mutation_positions(node)]
            found += [Mutant(module, name, n, at[0][0]) for n, at in enumerate(places)]
    return found


def planted(mutant: Mutant) -> str | None:
    """Return a file with a defect, or None if that can't be compiled: no test is needed then."""
    source = Path(mutant.module).read_text()
    changed: str = mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
    try:
        compile(changed, mutant.module, "exec")
    except SyntaxError:  # as where the star of a signature is another operator
        return None
    return changed


def statement(source: str, line: int) -> int | None:
    """Return where the statement at a line begins, or None if it is run by an import."""
    inside = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line)
    ]
    if not inside:  # a decorator, which is no statement of its own
        return None
    functions = [node for node in inside if isinstance(node, FUNCTIONS)]
    last = max(inside, key=lambda node: node.lineno)
    return None if not functions or last is functions[0] else last.lineno


def note_reached(tests: list[str], modules: list[str], tree: Path, log: Path) -> Notes:
    """Run tests once as they are and return which statements they reach; what fails is left out."""
    noted = log.with_name("noted")

    def run() -> int:
        for module in modules:
            path = Path(module)
            path.write_text(marked(path.read_text(), module))
        setattr(builtins, MARK, REACHED)
        plugin = Noting()
        code = run_pytest(plugin, *tests)
        noted.write_bytes(pickle.dumps(plugin.notes))
        return code

    code = forked(run, log, 3600)
    copy_of_the_tree(tree)  # without the marks
    if code:
        print(log.read_text()[-8000:])
    notes: Notes = pickle.loads(noted.read_bytes())
    notes.folders = tests
    print(*tests, f"{len(notes.seconds)} tests passed, exit code {code}", flush=True)
    return notes


def in_common(module: str, tests: str) -> int:
    """Return how many folders a module and tests have in common, which mirror the package."""
    pairs = zip(Path(module).parts[1:], Path(tests).parts[1:], strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def is_in(test: str, folder: str) -> bool:
    """Return whether a test, or a folder or file of tests, lies in another."""
    return f"{test.partition('::')[0]}/".startswith(f"{folder}/")


def first_failure(names: list[str], seconds: float, log: Path) -> str | None:
    """Run tests until one fails and return it; None if none does.

    One that passes alone may have failed for the order alone, and is no witness: the run goes on
    behind it.
    """
    failed = log.with_name("failed")
    while names:
        failed.unlink(missing_ok=True)
        files = sorted({each.partition("::")[0] for each in names})
        code = forked(partial(run_pytest, Chosen(names, failed), "-x", *files), log, seconds)
        if code in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            return None
        if code == TIMED_OUT:
            return "the limit of time"
        if not failed.exists():
            return "an import, or a crash"
        found = failed.read_text()
        alone = partial(run_pytest, Chosen([found], failed), found.partition("::")[0])
        if len(names) == 1 or forked(alone, log, seconds):
            return found
        print(f"{found} passes alone", flush=True)
        names = names[names.index(found) + 1 :] if found in names else names[:-1]
    return None


def judge(mutant: Mutant, notes: Notes, options: argparse.Namespace, log: Path) -> str:
    """Plant a defect, run what reaches it, and say what came of it."""
    path = Path(mutant.module)
    source, written = path.read_text(), path.stat()
    changed = planted(mutant)
    assert changed is not None
    start = statement(source, mutant.line)
    left = notes.reaching(None if start is None else f"{mutant.module}:{start}")
    outcome = "not reached"
    try:
        path.write_text(changed)
        os.utime(path, (0, 0))  # the compiled original is for another time
        for folder in sorted(options.tests, key=lambda each: -in_common(mutant.module, each)):
            names = [each for each in left if is_in(each, folder)]
            left = [each for each in left if each not in set(names)]
            names = names[: options.most]
            if not names:
                continue
            limit = 30 + 5 * sum(notes.seconds[each] for each in names)
            failed = first_failure(names, limit, log)
            if failed is not None:
                return f"noticed by {failed}"
            outcome = "SURVIVED"
        pair = source.splitlines(), changed.splitlines()
        print(*difflib.unified_diff(*pair, mutant.module, lineterm="", n=2), sep="\n")
        return outcome
    finally:
        path.write_text(source)
        os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))


def measure(options: argparse.Namespace, folder: Path) -> None:
    """Sample, run and report, in a copy of the tree."""
    CASES[:] = [f"--cases={options.cases}"]
    tree, log = copy_of_the_tree(folder / "tree"), folder / "log"
    kept: Path | None = options.notes and options.notes.resolve()
    os.chdir(tree)
    sys.path[:] = [str(tree), *(each for each in sys.path if each not in ("", str(ROOT)))]
    os.environ.update(PYTHONPATH=str(tree), CI="1", PYTHONDONTWRITEBYTECODE="1")
    subprocess.run([sys.executable, "-m", "compileall", "-q", "."], check=True)
    given = [Path(each) for each in options.modules]
    files = [path for each in given for path in (each.rglob("*.py") if each.is_dir() else [each])]
    modules = sorted(map(str, files))
    notes = pickle.loads(kept.read_bytes()) if kept is not None and kept.exists() else Notes()
    missing = [each for each in options.tests if not any(is_in(each, of) for of in notes.folders)]
    if wanted := [*missing, *options.anew]:  # of which pytest runs what lies in another once
        notes.add(note_reached(wanted, modules, tree, log))
    if kept is not None:
        kept.write_bytes(pickle.dumps(notes))
    everything = possible(modules)
    random.Random(options.seed).shuffle(everything)
    sample = list(islice((each for each in everything if planted(each)), options.sample))
    count = len(sample)
    print(f"{count} of {len(everything)} possible mutants", flush=True)
    survived = []
    for number in options.only or range(count):
        start, outcome = time.monotonic(), judge(sample[number], notes, options, log)
        took = time.monotonic() - start
        print(f"{number}: {outcome} ({took:.0f} s) {sample[number]}", flush=True)
        if outcome in ("SURVIVED", "not reached"):
            survived.append(number)
    print("not noticed:", *survived)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("modules", nargs="+", help="files or folders to plant defects in")
    parser.add_argument("--tests", nargs="+", required=True, help="the tests that should notice")
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", type=int, help="of the sample, only these numbers")
    parser.add_argument("--cases", default="all", help="`sample`: as a plain run of the tests does")
    parser.add_argument("--most", type=int, help="try only so many tests of each folder or file")
    parser.add_argument("--anew", nargs="+", default=[], help="tests to note again")
    parser.add_argument("--notes", type=Path, help="keep what tests reach here, for the next run")
    # What an import leaves behind, forks have: it must be the copy's, not this tree's.
    assert not any(name.startswith("numgrad") for name in sys.modules)
    sys.modules.pop("tests", None)
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as folder:
        measure(parser.parse_args(), Path(folder))


if __name__ == "__main__":
    main()
