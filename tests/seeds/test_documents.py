"""The five documents that numgrad grew from, replayed with only their import line changed.

Each file in ``documents/`` is the transcript of a notebook or article: its code under ``[code]``,
and beneath it everything that the code brings about: what it prints, the value that a notebook
echoes, its warnings and its error. Replaying the code must reproduce the transcript as a whole.

Where PyTorch has reworded or renamed something since a document was written, the transcript has
PyTorch 2.13's words; the same replay with PyTorch itself shows that they are.
"""

from __future__ import annotations

import ast
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "documents"
DOCUMENTS = (
    "leaves_and_accumulation",
    "autograd_tips",
    "tensor_settings",
    "printing_the_graph",
    "one_and_three_tensors",
)
SECTION = re.compile(r"^\[(code|printed|value|warning|error)\]\n", flags=re.MULTILINE)
Section = tuple[str, str]


def read_transcript(name: str) -> list[Section]:
    """Return the (kind, text) sections of a document; what precedes the first is a description."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    _, *parts = SECTION.split(text)
    return [(kind, body.rstrip("\n")) for kind, body in zip(parts[::2], parts[1::2], strict=True)]


def replay(code: str, namespace: dict[str, Any]) -> Iterator[Section]:
    """Execute one cell as a notebook does, and yield the sections that it brings about."""
    statements = ast.parse(code).body
    echoed = statements.pop() if isinstance(statements[-1], ast.Expr) else None
    value, error = None, ""
    with redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(ast.Module(statements, []), "<document>", "exec"), namespace)
            if echoed is not None:
                expression = ast.Expression(echoed.value)
                value = eval(compile(expression, "<document>", "eval"), namespace)
        except RuntimeError as raised:
            error = f"RuntimeError: {raised}"
    yield "printed", printed.getvalue().rstrip("\n")
    yield "value", "" if value is None else repr(value)
    yield "warning", "\n".join(f"{w.category.__name__}: {w.message}" for w in caught)
    yield "error", error


def replay_document(name: str, module: str) -> list[Section]:
    """Execute a document in order, importing `module` where it imports torch."""
    namespace: dict[str, Any] = {}
    sections = []
    for code in (text for kind, text in read_transcript(name) if kind == "code"):
        sections.append(("code", code))
        changed = re.sub(r"^import torch$", f"import {module} as torch", code, flags=re.MULTILINE)
        sections += [(kind, text) for kind, text in replay(changed, namespace) if text]
    assert namespace["torch"].__name__ == module
    return sections


def comparable(sections: list[Section]) -> str:
    """Join the sections to one text, without what may differ between two runs of one program.

    Addresses and versions are blanked. The numbers that ``id`` returned are replaced by the order
    in which they first appear, so that which of them are equal is still compared. PyTorch ends a
    warning with the line of its C++ source, which numgrad doesn't have.
    """
    identities: dict[str, str] = {}
    text = "\n\n".join(f"[{kind}]\n{body}" for kind, body in sections)
    text = re.sub(r"0x[0-9A-Fa-f]+", "0x...", text)
    text = re.sub(r"'\d+\.\d+\.\d+[^']*'", "'version'", text)
    text = re.sub(r" \(Triggered internally at [^)]*\)", "", text)
    return re.sub(
        r"\b\d{9,}\b",
        lambda found: identities.setdefault(found[0], f"id-{len(identities)}"),
        text,
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_document_runs_with_only_its_import_changed(name: str) -> None:
    assert comparable(replay_document(name, "numgrad")) == comparable(read_transcript(name))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_transcript_is_what_pytorch_does(name: str, torch: ModuleType) -> None:
    assert comparable(replay_document(name, torch.__name__)) == comparable(read_transcript(name))


def test_every_document_is_replayed() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(DOCUMENTS)
