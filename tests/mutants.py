"""Plant small defects in the package, one at a time, and say which of them no test notices.

``python -m tests.mutants numgrad/graph --tests tests/graph tests/autograd --sample 100`` has
cosmic-ray (``pip install cosmic-ray``) change an operator, a comparison, a number or a branch in a
copy of the tree, and runs those tests until one fails. What survives is printed as a diff: either a
test is missing, or the change changes nothing that can be seen. Every mutant is a run of pytest, so
choose the tests that are about the code that is changed, the fastest first.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# `|` stands between types almost everywhere, where nothing can be noticed.
SKIPPED = ("core/ReplaceBinaryOperator_BitOr_", "core/RemoveDecorator")
CONFIGURATION = """
[cosmic-ray]
module-path = {modules}
timeout = {timeout}
excluded-modules = []
test-command = {command}
[cosmic-ray.distributor]
name = "local"
"""


def copy_of_the_tree(folder: Path) -> Path:
    """Copy what git tracks, so that defects are planted there and not here."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, target)
    return folder


def choose(database: Path, count: int, seed: int) -> int:
    """Keep a random sample of the planned mutants; return of how many."""
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select job_id, operator_name from mutation_specs").fetchall()
        rows = sorted(row for row in rows if not row[1].startswith(SKIPPED))
        kept = {row[0] for row in random.Random(seed).sample(rows, min(count, len(rows)))}
        everything = connection.execute("select job_id from work_items").fetchall()
        dropped = [row for row in everything if row[0] not in kept]
        connection.executemany("delete from mutation_specs where job_id = ?", dropped)
        connection.executemany("delete from work_items where job_id = ?", dropped)
    return len(rows)


def report(database: Path) -> None:
    """Print how many mutants were noticed, and the diffs of those that were not."""
    with sqlite3.connect(database) as connection:
        results = connection.execute("select test_outcome, diff from work_results").fetchall()
    survivors = [diff for outcome, diff in results if outcome == "SURVIVED"]
    for diff in survivors:
        print(diff, end="\n\n")
    print(f"{len(results) - len(survivors)} of {len(results)} mutants were noticed")


def main() -> None:
    """Sample, run and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("modules", nargs="+", help="files or folders to plant defects in")
    parser.add_argument("--tests", nargs="+", required=True, help="the tests that should notice")
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=900.0, help="of one run, in seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_of_the_tree(Path(folder) / "tree")
        configuration, database = Path(folder) / "config.toml", Path(folder) / "session.sqlite"
        run = f"{sys.executable} -m pytest -x -q --cases=all -p no:cacheprovider "
        run += " ".join(options.tests)
        configuration.write_text(
            CONFIGURATION.format(
                modules=json.dumps(options.modules),
                timeout=options.timeout,
                command=json.dumps(run),
            )
        )
        environment = {**os.environ, "PYTHONPATH": str(tree), "CI": "1"}

        def cosmic_ray(*arguments: object) -> None:
            command = [sys.executable, "-m", "cosmic_ray.cli", *map(str, arguments)]
            subprocess.run(command, cwd=tree, env=environment, check=True)

        cosmic_ray("baseline", configuration)
        cosmic_ray("init", configuration, database)
        total = choose(database, options.sample, options.seed)
        print(f"{options.sample} of {total} possible mutants", flush=True)
        cosmic_ray("exec", configuration, database)
        report(database)


if __name__ == "__main__":
    main()
