"""Functions declared by their signatures: how they are called, and what wrong calls are told."""

from __future__ import annotations

import inspect
import itertools
import pickle
import warnings
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.calls.dispatch import Calls
from numgrad.ops.signatures.declaration import Declaration
from numgrad.ops.signatures.declared import DECLARED, declare, declared_function
from numgrad.ops.signatures.declared_source import function_source
from numgrad.ops.signatures.kinds import NAMES
from numgrad.ops.signatures.signature import ABSENT, REQUIRED, alternatives, merged, parse
from tests.ops.signatures.wrong_calls import GOOD, agree, complaint, wrong_calls

# In PyTorch the first line's are Python, whose words they have; the next take "from 1 to 0"
# arguments, a format that can't be None, and the last lines' stand elsewhere, or have ways to call
# that are told apart there by more than the first element of a list.
NOT_COMPARED = ("from_dlpack", "norm", "is_shared", "is_storage", "share_memory_", "storage")
NOT_COMPARED += ("storage_type", "untyped_storage", "nonzero", "round", "round_", "is_contiguous")
NOT_COMPARED += ("contiguous", "split", "unflatten", "unique", "unique_consecutive")
NOT_COMPARED += ("histogramdd", "lu")
# Of a keyword that is none, PyTorch says that a dim is missing; and it has some in Python alone.
NOT_COMPARED += ("median", "nanmedian", "cdist", "stft", "istft", "gradient")
NOT_COMPARED += ("interp", "cubic_spline", "piecewise_polynomial")  # which it has not
NOT_COMPARED += ("logsigmoid", "softplus")
NOT_COMPARED += ("svd_lowrank", "pca_lowrank", "lobpcg")  # which are Python there
# These take a bool for a dim, tell what is left out in another order, take complex ends, None for
# dims, and a device.
NOT_COMPARED += ("nuclear_norm", "embedding_bag", "range", "hash_tensor", "is_pinned")
# These have a second signature there, for packed sequences.
NOT_COMPARED += ("gru", "lstm", "rnn_tanh", "rnn_relu")
# What PyTorch has by these names in nn.functional and masked, and most of it written in Python.
_OF_NN = ("activations", "softmax", "gumbel", "layers", "normalised", "dropping")
_OF_NN += ("losses.classes", "losses.class_margins", "losses.linear_losses", "losses.margins")
_OF_NN += ("losses.probabilities", "losses.regression")
_FUNCTIONAL = ("numgrad.ops.masked", *[f"numgrad.ops.nn.{each}" for each in _OF_NN])
PARSED = [
    pytest.param(each, id=f"{'Tensor.' * each.bound}{each.name}")
    for each in DECLARED.values()
    if each.name not in NOT_COMPARED and not each.rule.__module__.startswith(_FUNCTIONAL)
    if each.rule.__module__ != "numgrad.nn.functional"
    if not each.rule.__module__.startswith("tests.")  # what tests declare is theirs
]
# Functions, methods and in-place forms of one name: a test each.
BY_NAME: dict[str, list[Any]] = defaultdict(list)
for _function, _declaration in DECLARED.items():
    BY_NAME[_declaration.name.rstrip("_")].append(_function)
every_name = pytest.mark.parametrize("name", sorted(BY_NAME))


def test_a_signature_is_parsed() -> None:
    signature = parse("f(Tensor input, int[1]? dim=None, *, bool keepdim=False, Tensor? out=None)")
    assert signature.name == "f"
    assert [tuple(each) for each in signature.parameters] == [
        ("Tensor", "input", REQUIRED, False, False, False, (), None),
        ("int[]", "dim", None, True, False, True, (), None),
        ("bool", "keepdim", False, False, True, False, (), None),
        ("Tensor", "out", None, True, True, False, (), None),
    ]
    assert [each.name for each in signature.of_method().parameters] == ["dim", "keepdim"]


@pytest.mark.parametrize("text", ["f", "f(Tensor)", "f(Tensor input, 3)", "f(Tensor input=)"])
def test_what_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        parse(text)


def test_signatures_are_merged() -> None:
    one = merged((parse("f(int end)"), parse("f(int start, int end, int step=1)")))
    assert [(each.name, each.default, each.shown) for each in one.parameters] == [
        ("start", ABSENT, None),
        ("end", REQUIRED, REQUIRED),
        ("step", ABSENT, 1),
    ]


# Two ways to call one function: the kind of what stands at a place tells, or how many there are.
TOLD = [
    ("Tensor other", "int dim, bool keepdim=False", {"other": "dim"}),
    ("bool unbiased", "int[1]? dim, bool unbiased, bool keepdim=False", {"unbiased": "dim"}),
    ("int dim, Tensor src", "int dim, number value", {"src": "value"}),
    ("int dim", "int dim, Tensor index", {}),
    ("int end", "int start, int end", None),
    ("int end", "number start, int step", None),
    ("Tensor other, int dim", "int dim, Tensor other", None),
    ("Tensor other, int dim=0", "int end, int dim=0", {"other": "end"}),
    ("int[] others, int dim=0", "int end, int dim=0", {"others": "end"}),
    ("int end", "int[] others", {"end": "others"}),
]


@pytest.mark.parametrize(("one", "other", "expected"), TOLD)
def test_kinds_tell_parameters_apart(one, other, expected):
    signatures = (parse(f"f(Tensor input, {one})"), parse(f"f(Tensor input, {other})"))
    assert alternatives(signatures) == expected
    if expected:
        whole = merged(signatures)
        longest = [each.name for each in signatures[1].positional]
        assert [each.name for each in whole.positional] == longest


@pytest.mark.parametrize(("one", "other", "expected"), TOLD)
def test_each_way_to_call_reaches_its_parameters(one, other, expected):
    texts = (f"f(Tensor input, {one})", f"f(Tensor input, {other})")
    signatures = tuple(map(parse, texts))
    names = {each.name: each for each in merged(signatures).parameters}
    made: dict[str, Any] = {}
    exec(f"def f({', '.join(names)}): return dict(locals())", made)
    function = declared_function(
        Declaration(signatures, made["f"], bound=False, special={}, finish=None), __name__
    )
    for signature in signatures:
        given = {each.name: eval(GOOD[each.kind], {"torch": ng}) for each in signature.parameters}
        plain = {name: given.get(name, each.shown) for name, each in names.items()}
        found = function(*given.values())
        assert found.keys() == plain.keys()
        assert all(found[name] is given[name] or found[name] == given[name] for name in given)
        assert all(found[name] == plain[name] for name in names.keys() - given.keys())
        by_name = function(**given)
        assert all(by_name[name] is given[name] or by_name[name] == given[name] for name in given)


@pytest.mark.sampled(0.09)
@pytest.mark.parametrize("declaration", PARSED)
def test_wrong_calls_are_told_what_pytorch_tells_them(
    torch, declaration: Declaration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # `from_file` makes the file that it is told
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in wrong_calls(declaration):
            ours, theirs = complaint(ng, call), complaint(torch, call)
            assert agree(ours, theirs, declaration.name), (
                f"\n{call.text}\nours:    {ours}\nPyTorch: {theirs}"
            )


@given(
    st.sampled_from(TOLD),
    st.sampled_from(["int count=2", "float eps=0.5", "str mode='a'", "bool keep=False"]),
    st.sampled_from([ng.ones(3), np.ones(3), [ng.ones(3)], (ng.ones(2), 1), ng.ones(0)]),
    st.lists(
        st.sampled_from(["axis", "dim", "count", "eps", "mode", "keep", "other", "src", "end"])
    ),
)
def test_a_tensor_in_the_place_of_a_number_is_told_to_be_one(told, option, value, names) -> None:
    """A tensor has no truth value: nothing may ask whether it equals a default."""
    one, other, _ = told
    texts = (f"f(Tensor input, {one}, *, {option})", f"f(Tensor input, {other})")
    try:
        signatures = tuple(map(parse, texts))
        whole = merged(signatures)
    except (ValueError, AssertionError):
        return
    made: dict[str, Any] = {}
    exec(f"def f({', '.join([each.name for each in whole.parameters])}): return 'rule'", made)
    function = declared_function(
        Declaration(signatures, made["f"], bound=False, special={}, finish=None), __name__
    )
    try:
        assert function(ng.ones(3), **dict.fromkeys(names, value)) == "rule"
    except TypeError as error:
        assert "f()" in str(error)  # noqa: PT017 - none is right, too


def test_the_plain_call_is_not_read_again() -> None:
    """Whatever is plainly as declared goes to the rule at once."""
    for function in itertools.chain(*BY_NAME.values()):
        if DECLARED[function].name not in (*NOT_COMPARED, "result_type"):  # all kinds tell of names
            check_plain_call(DECLARED[function])


def check_plain_call(declaration: Declaration) -> None:
    names = {"torch": ng}
    # One signature that takes all there is, or the first.
    whole = declaration.signature.positional
    ways = [each.positional for each in declaration.signatures]
    taken = whole if any(len(each) == len(whole) for each in ways) else ways[0]
    values = [eval(GOOD[each.kind], names) for each in taken]
    needed = {
        each.name: eval(GOOD[each.kind], names)
        for each in declaration.signature.parameters
        if each.keyword_only and each.default is REQUIRED
    }
    source = function_source(declaration)
    namespace = {**NAMES, "REQUIRED": REQUIRED, "rule": lambda *given: "rule"}
    namespace["finish"] = lambda name, value, *options: value
    namespace["perform"] = namespace["rule"]
    if declaration.calls is not None:
        namespace |= Calls(namespace["rule"], declaration.calls.sequence).names
    exec(source, namespace)
    owner = [object()] * declaration.bound
    assert namespace[declaration.name](*owner, *values, **needed) == "rule"


def test_a_declared_function_looks_like_one_written_by_hand() -> None:
    for function in itertools.chain(*BY_NAME.values()):
        declaration = DECLARED[function]
        shown = inspect.signature(function).parameters
        spread = {key for key, each in shown.items() if each.kind is each.VAR_POSITIONAL}
        names = [each for each in shown if each not in {*spread, "self"}]
        assert names == [each.name for each in declaration.signature.parameters]
        assert function.__qualname__ == declaration.name
        assert function.__doc__.count("    Parameters\n") == (1 if names else 0)
        for each in names:
            assert each in function.__doc__.split("Parameters\n")[1]


def test_a_declared_function_is_pickled_by_its_name() -> None:
    for function in itertools.chain(*BY_NAME.values()):
        assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    "parameters",
    [
        "int n",
        "Tensor input, object extra",
        "Tensor input, device? device=None",
        "Tensor[]? out",
        "Tensor[] tensors, Tensor[] others",
        "Tensor input, Tensor[] others",
    ],
)
def test_calls_that_no_key_tells_apart_are_not_remembered(parameters: str) -> None:
    names = [each.split("=")[0].split()[-1] for each in parameters.split(", ")]
    rule = eval(f"lambda {', '.join(names)}: None")
    with pytest.raises(ValueError, match="remembered"):
        declare(f"told_by_nothing({parameters})", method=False, dispatched=True)(rule)
    assert not hasattr(ng, "told_by_nothing")


def test_many_threads_may_call_a_function_first() -> None:
    def power_of(input, power):
        return input**power

    signatures = (parse("power_of(Tensor input, int power=1)"),)
    declaration = Declaration(signatures, power_of, bound=False, special={}, finish=None)
    function = declared_function(declaration, __name__)
    x = ng.tensor([2.0])
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda power: function(x, power).item(), range(8)))
    assert results == [2.0**power for power in range(8)]
