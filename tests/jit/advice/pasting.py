"""Paste what an error shows into the function that raised it, until it raises none."""

from __future__ import annotations

import ast
import importlib.util
import re
import textwrap
from pathlib import Path
from typing import Any

import numgrad as ng

__all__ = ["Pasted", "load", "paste"]

_HEADER = "import math\nimport numgrad as ng\n\n"
_SHOWN = re.compile(r"; or write (line|lines|`)(.*?)(`|) as a function:\n(.*)", re.DOTALL)


def load(folder: Path, name: str, source: str) -> Any:
    """Return the function `program` of a source."""
    path = folder / f"{name}.py"
    path.write_text(_HEADER + source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def paste(source: str, message: str) -> str | None:
    """Return a source with what a message shows; None if that shows nothing."""
    found = _SHOWN.search(message)
    if found is None:
        return None
    kind, place, _, advice = found.groups()
    whole = _HEADER + source
    lines = whole.splitlines()
    at = int(re.findall(r"\.py:(\d+): ", message)[-1])
    if kind == "`":
        return _in_expression(whole, at, place, advice.strip()).removeprefix(_HEADER)
    numbers = [int(each) for each in re.findall(r"\d+", place)]
    first, last = numbers[0] - 1, numbers[-1]
    indent = re.match(r"\s*", lines[first]).group()
    lines[first:last] = textwrap.indent(textwrap.dedent(advice), indent).splitlines()
    return "\n".join(lines).removeprefix(_HEADER) + "\n"


def _in_expression(whole: str, line: int, expression: str, advice: str) -> str:
    """Return a source with an expression of a line replaced."""
    for node in ast.walk(ast.parse(whole)):
        if not isinstance(node, ast.expr) or not node.lineno <= line <= node.end_lineno:
            continue
        if ast.unparse(node) == expression:
            lines = whole.splitlines(keepends=True)
            starts = [sum(map(len, lines[:k])) for k in range(len(lines))]
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            return f"{whole[:start]}({advice}){whole[end:]}"
    raise AssertionError(f"{expression} does not stand in line {line}")


class Pasted:
    """A program, what it becomes when all advice is pasted, and what the last error says.

    Attributes
    ----------
    versions : list of callable
        The program as it was, and after each pasting.
    words : str
        The error that shows nothing; "" if there is none in the end.
    """

    def __init__(self, folder: Path, source: str, x: ng.Tensor, transform: Any = ng.jit) -> None:
        self.sources = [source]
        self.versions = [load(folder, "program_0", source)]
        self.words = ""
        for number in range(1, 8):
            try:
                transform(self.versions[-1])(x)
            except ng.TraceError as error:
                self.words = str(error)
            else:
                self.words = ""
                return
            following = paste(self.sources[-1], self.words)
            if following is None:
                return
            self.sources.append(following)
            self.versions.append(load(folder, f"program_{number}", following))
