"""What type checkers are told of the public names is what there is."""

from __future__ import annotations

import ast

import numgrad
from tests.docs import stubs


def test_the_stub_is_of_these_functions() -> None:
    written = ast.parse(stubs.STUB.read_text())
    assert ast.dump(written) == ast.dump(ast.parse(stubs.text())), "python -m tests.docs.stubs"


def test_every_public_name_is_in_the_stub() -> None:
    tree = ast.parse(stubs.STUB.read_text())
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    assert set(numgrad.__all__) <= names
