"""What type checkers are told of the public names is what there is."""

from __future__ import annotations

import ast

import pytest

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


GIVEN = {"dim": 0, "axis": 0, "keepdim": True, "keepdims": True, "non_blocking": True}
NAMES = {"Tensor": "Tensor", "_int": "int", "str": "str", "Size": "Size"}


@pytest.mark.parametrize("name", stubs._OVERLOADS)
def test_each_way_to_call_a_function_gives_what_is_said(name: str) -> None:
    for parameters, returned in stubs._OVERLOADS[name]:
        x = numgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
        values = {**GIVEN, "other": x, "dtype": "torch.DoubleTensor"}
        values["as_tuple"] = "True" in parameters
        names = [each.split(":")[0] for each in parameters.split(", ") if ":" in each]
        if "keepdim" in names and "keepdims" in names:
            names.remove("keepdim")  # one of the two
        found = getattr(x, name)(**{each: values[each] for each in names})
        if returned == "_ValuesIndices":
            assert found._fields == ("values", "indices")
        else:
            assert type(found).__name__ == NAMES.get(returned, "tuple")


NAMED = {name: each for name, each in stubs._RETURNS.items() if f"class {each}(" in stubs._ALIASES}


@pytest.mark.parametrize("name", NAMED)
def test_named_results_have_the_fields_that_are_said(name: str) -> None:
    x = numgrad.tensor([[2.0, 1.0], [1.0, 3.0]])
    more = {"kthvalue": (1,), "topk": (1,), "triangular_solve": (x,), "histogramdd": ([2, 2],)}
    more |= {"lu_unpack": (numgrad.tensor([1, 2], dtype=numgrad.int32),), "cummax": (0,)}
    more |= {"cummin": (0,)}
    result = getattr(numgrad, name)(x, *more.get(name, ()))
    (said,) = (
        node
        for node in ast.parse(stubs._ALIASES).body
        if isinstance(node, ast.ClassDef) and node.name == NAMED[name]
    )
    assert result._fields == tuple(ast.unparse(line).split(":")[0] for line in said.body)


@pytest.mark.parametrize("name", [n for n, each in stubs._RETURNS.items() if each == "NoReturn"])
def test_what_returns_nothing_raises(name: str) -> None:
    x = numgrad.ones(2, 2)
    arguments = (x, x) if name in ("solve", "lstsq") else (x,)
    with pytest.raises(RuntimeError):
        getattr(numgrad, name)(*arguments)
