"""Write tables of short programs: ``python -m tests.write_outcomes tests/graph/outcomes.txt``.

Needs PyTorch. Every program of the table runs in both libraries: what comes of it is written below
it, and those that end otherwise in PyTorch are moved behind the line of dashes, with what numgrad
does. To add a program, write it at the table's end, with an empty line before it and nothing below.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import numgrad as ng
from tests.outcomes import DASHES, outcome, read


def write(path: Path) -> None:
    """Run all programs of a table, write it anew, and print what is another than before."""
    parts: tuple[list[str], list[str]] = ([], [])
    before = [each for part in read(path) for each in part if each]
    assert len({program for program, *_ in before}) == len(before), "a program stands there twice"
    for program, *was in before:
        ours, theirs = outcome(ng, program), outcome(torch, program)
        entry = "\n".join([program, *ours])
        assert "\n\n" not in f"{entry}\n", f"an empty line, which would end the entry: {entry}"
        parts[ours != theirs].append(entry)
        if list(ours) != was:
            print("", entry, *(["PyTorch:", *theirs] if ours != theirs else []), sep="\n")
    kept = ["\n\n".join(part) for part in parts if part]
    path.write_text(f"\n\n{DASHES}\n\n".join(kept) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name))
