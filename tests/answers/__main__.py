"""Record PyTorch's answers: ``python -m tests.answers [tests ...]``, with PyTorch installed.

The tests that ask for PyTorch run twice with it, and what it answered the same both times is kept;
then they run on the record alone, and those that pass are written to ``tests/answers/recorded``.
Without arguments every file is recorded anew; with paths of test files, those.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import torch

from tests.answers import archive
from tests.answers.plugin import differs


def run(paths: list[str], more: list[str], **environment: str) -> None:
    """Run the tests that ask for PyTorch; some may fail with stand-ins, and are left out."""
    command = [sys.executable, "-m", "pytest", "-m", "torch", "--cases=all", "-q", "--tb=no"]
    subprocess.run([*command, *more, *paths], env={**os.environ, "CI": "1", **environment})


def recorded(paths: list[str]) -> dict[str, archive.Record]:
    """Run tests with PyTorch, and return its answers to those that passed."""
    with tempfile.TemporaryDirectory() as folder:
        run(paths, ["-n", "auto"], NUMGRAD_TESTS_RECORD_TO=folder)
        found = {}
        for file in Path(folder).iterdir():
            with file.open("rb") as stream:
                identity, entries, arrays = pickle.load(stream)
            found[identity] = (entries, arrays)
    return found


def write(records: dict[str, archive.Record], paths: list[str]) -> None:
    """Write records to the files of their tests; files of `paths` without any are removed."""
    by_file: dict[str, dict[str, archive.Record]] = defaultdict(dict)
    for identity, record in records.items():
        path, name = archive.split_identity(identity)
        by_file[path][name] = record
    instructions = torch.backends.cpu.get_cpu_capability()
    total = sum(archive.write(path, kept, instructions) for path, kept in by_file.items())
    for file in archive.FOLDER.rglob("*.xz"):
        path = Path("tests") / file.relative_to(archive.FOLDER).with_suffix(".py")
        if str(path) not in by_file and (not paths or str(path) in paths):
            file.unlink()
    print(f"{len(records)} tests in {len(by_file)} files, {total / 1e6:.1f} MB", flush=True)


def passed_alone(paths: list[str]) -> set[str]:
    """Run tests on the record, and return which passed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "passed"
        run(
            paths,
            ["-n", "auto", "-p", "tests.answers.passed", f"--passed-to={report}"],
            NUMGRAD_TESTS_WITHOUT_PYTORCH="1",
        )
        return set(report.read_text().splitlines())


def main(paths: list[str]) -> None:
    """Record, compare two runs, and keep what is enough for a run without PyTorch."""
    first, second = recorded(paths), recorded(paths)
    same = {
        identity: record
        for identity, record in first.items()
        if identity in second and not differs(record, second[identity])
    }
    write(same, paths)
    passed = passed_alone(paths)
    for identity in sorted(set(same) - passed):
        print("not kept, for it fails on the record:", identity)
    write({identity: record for identity, record in same.items() if identity in passed}, paths)


if __name__ == "__main__":
    main(sys.argv[1:])
