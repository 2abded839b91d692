"""The files that PyTorch's answers are kept in: one for every test file, compressed.

A file is XZ of a line of JSON, which has the entries of every test, and the bytes of the arrays
that they name. Arrays of the same bytes stand in it once. Beside the tests the line has the
instructions that PyTorch computed with ("AVX2", "AVX512"), for its numbers depend on them.
"""

from __future__ import annotations

import functools
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np

from tests.answers.stand_in import Entry

__all__ = [
    "FOLDER",
    "Record",
    "file_for",
    "instructions",
    "load",
    "read",
    "split_identity",
    "write",
]

FOLDER = Path(__file__).parent / "recorded"

# What PyTorch answered to one test: the entries, and the arrays that they number.
Record = tuple[list[Entry], list[np.ndarray]]


def split_identity(identity: str) -> tuple[str, str]:
    """Return a test's file and the rest of what pytest calls it."""
    path, _, name = identity.partition("::")
    return path, name


def file_for(path: str) -> Path:
    """Return where the answers to a test file are kept."""
    return FOLDER / Path(path).relative_to("tests").with_suffix(".xz")


def _layout(array: np.ndarray) -> str:
    """Return "F" for what lies column by column, else "C"."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def write(path: str, records: dict[str, Record], instructions: str) -> int:
    """Write the answers to a test file's tests; return the number of bytes."""
    blob, places = bytearray(), {}
    tests: dict[str, Any] = {}
    for name, (entries, arrays) in sorted(records.items()):
        listed = []
        for array in arrays:
            layout = _layout(array)
            content = array.tobytes(layout)
            at = places.get(content)
            if at is None:
                at = places[content] = len(blob)
                blob += content
            listed.append([str(array.dtype), list(array.shape), layout, at])
        tests[name] = [entries, listed]
    head = json.dumps(
        {"instructions": instructions, "tests": tests}, separators=(",", ":")
    ).encode()
    file = file_for(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(lzma.compress(head + b"\n" + bytes(blob), preset=9 | lzma.PRESET_EXTREME))
    return file.stat().st_size


def read(path: str) -> dict[str, Record]:
    """Return the answers to a test file's tests, by what pytest calls them."""
    return load(path)[1]


def instructions(path: str) -> str:
    """Return which instructions PyTorch had when it answered to a test file's tests."""
    return load(path)[0]


@functools.lru_cache(maxsize=4)
def load(path: str) -> tuple[str, dict[str, Record]]:
    """Return both of what a test file's archive says; nothing where there is none."""
    file = file_for(path)
    if not file.exists():
        return "", {}
    line, _, blob = lzma.decompress(file.read_bytes()).partition(b"\n")
    head = json.loads(line)
    return head["instructions"], {
        name: (entries, [_array(blob, *each) for each in listed])
        for name, (entries, listed) in head["tests"].items()
    }


def _array(blob: bytes, dtype: str, shape: list[int], layout: Any, at: int) -> np.ndarray:
    count = int(np.prod(shape, dtype=int))
    return np.frombuffer(blob, dtype, count, at).reshape(shape, order=layout).copy(order="K")
