"""What type checkers are told of the public names is what there is."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import Any

import pytest

import numgrad
from numgrad.ops.core.registry import FUNCTIONS, INPLACE, METHODS
from numgrad.ops.signatures.argument_parser import bind
from numgrad.ops.signatures.declared import DECLARED
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


NAMES = {"Tensor": "Tensor", "_int": "int", "str": "str", "Size": "Size"}


@pytest.mark.parametrize("name", stubs._OVERLOADS)
def test_each_way_to_call_a_function_gives_what_is_said(name: str) -> None:
    for parameters, returned in stubs._OVERLOADS[name]:
        x = numgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
        values = {"dim": 0, "dtype": "torch.DoubleTensor", "non_blocking": True}
        values["as_tuple"] = "True" in parameters
        given = [each.split(": ") for each in parameters.split(", ") if ":" in each]
        names = [name for name, kind in given if name in values and "None =" not in kind]
        found = getattr(x, name)(**{each: values[each] for each in names})
        assert type(found).__name__ == NAMES.get(returned, "tuple")


# What a call is given for each type that the stub names.
VALUES: dict[str, Any] = {
    **{"Tensor": numgrad.ones(2, 2), "_int": 1, "_float": 0.5, "_bool": True, "_Number": 2.0},
    **{"str": "sum", "None": None, "_DType": numgrad.float64, "_Layout": numgrad.strided},
    **{"_Device": numgrad.device("cpu"), "_MemoryFormat": numgrad.preserve_format},
    **{
        "Generator": numgrad.default_generator,
        "Sequence[_int]": (1, 1),
        "Sequence[_float]": (0.5, 0.5),
    },
    "Sequence[Tensor]": (numgrad.ones(2), numgrad.ones(2)),
}


@functools.cache
def stub() -> ast.Module:
    return ast.parse(stubs.STUB.read_text())


def declarations(name: str) -> Iterator[tuple[Any, ast.FunctionDef]]:
    """Yield the function and each declaration that the stub has of it, method and function."""
    tree = stub()
    (methods,) = (node for node in tree.body if getattr(node, "name", "") == "_Methods")
    assert isinstance(methods, ast.ClassDef)
    for owner, body in ((numgrad, tree.body), (numgrad.Tensor, methods.body)):
        for node in body:
            is_it = isinstance(node, ast.FunctionDef) and node.name == name
            if is_it and stubs.has_ways(getattr(owner, name)):
                yield getattr(owner, name), node


OF_SEVERAL_WAYS = sorted(
    {name for name, each in {**METHODS, **FUNCTIONS, **INPLACE}.items() if stubs.has_ways(each)}
)


@pytest.mark.parametrize("name", OF_SEVERAL_WAYS)
def test_each_way_to_call_is_a_signature(name: str) -> None:
    found: dict[Any, set[Any]] = {}
    for function, node in declarations(name):
        signatures = DECLARED[function].signatures
        parameters = node.args.args[DECLARED[function].bound :]
        positional: list[Any] = []
        for index in range(len(parameters) + 1):  # all by position, all by name, and between
            named = [*parameters[index:], *node.args.kwonlyargs]
            if node.args.vararg is not None:
                positional = [1, 1]
            given = {each.arg: value_of(each, name) for each in named}
            found.setdefault(function, set()).add(bind(signatures, tuple(positional), given)[0])
            if index < len(parameters):
                positional.append(value_of(parameters[index], name))
    assert found
    for function, bound in found.items():
        assert bound == set(DECLARED[function].signatures)


@pytest.mark.parametrize("name", stubs._OF_SIGNATURE)
def test_each_signature_gives_what_is_said(name: str) -> None:
    x = numgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    parameter, with_it, without = stubs._OF_SIGNATURE[name]
    given = {"other": (x, x), "dim": (0,)}[parameter]
    for arguments, returned in ((given, with_it), ((), without)):
        found = getattr(numgrad, name)(x > 1 if name == "where" else x, *arguments)
        if returned == "_ValuesIndices":
            assert found._fields == ("values", "indices")
        else:
            assert type(found).__name__ == NAMES.get(returned, "tuple")


def value_of(parameter: ast.arg, name: str) -> Any:
    assert parameter.annotation is not None
    first = ast.unparse(parameter.annotation).split(" | ")[0]
    return VALUES[first]


# What is Any in the stub, and why nothing says more.
ANY = {
    "_Array": "arrays are of any dtype and shape",
    "_Number": "numbers of NumPy are of any width",
    **dict.fromkeys(("apply_", "map_", "map2_"), "what elements are in Python goes by the dtype"),
    "item": "what an element is in Python goes by the dtype; a union would have to be told apart",
    "tolist": "as deep as the tensor, or one number",
    "new": "of nested sequences, which mypy takes for endless where a str may be one",
    **dict.fromkeys(
        ("__array_function__", "__array_ufunc__"), "NumPy's protocol: functions of NumPy decide"
    ),
    "__deepcopy__": "Python's protocol: a memo holds whatever was copied",
    "__getattr__": "what users declare has no stub",
}


def test_what_is_any_says_why() -> None:
    tree = ast.parse(stubs.STUB.read_text())
    found: set[str] = set()
    for top in tree.body:
        for node in top.body if isinstance(top, ast.ClassDef) else [top]:
            if any(isinstance(each, ast.Name) and each.id == "Any" for each in ast.walk(node)):
                is_named = isinstance(node, ast.FunctionDef)
                found.add(node.name if is_named else ast.unparse(node).partition(":")[0])
    assert found == set(ANY)


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
