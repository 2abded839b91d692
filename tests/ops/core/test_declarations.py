"""What a declaration is refused for: names that mean something else in the rules."""

from __future__ import annotations

import importlib
import itertools
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numgrad as ng
from numgrad.ops.core.catalogue import check_name, load_files
from numgrad.ops.core.declare import elementwise, unary
from numgrad.ops.core.domains import REAL
from numgrad.ops.core.primitive import CATALOGUE, Primitive

ALWAYS_TAKEN = ["g", "y"]
TAKEN_BY_PRIMITIVES = [*ALWAYS_TAKEN, "g0", "inputs", "output_metas", "position", "shapes"]
FREE = ["a", "b", "x", "z", "input", "other", "gradient", "output", "g1", "yy"]


def product_of(names: list[str], **options: Any) -> Primitive:
    """Declare the product of three inputs, with rules that call them by their names."""
    rules = [
        eval(f"lambda {', '.join(dict.fromkeys(['g', *others]))}: g * {' * '.join(others)}")
        for others in ([n for n in names if n != own] for own in names)
    ]
    return Primitive(
        "product of three", "ProductBackward0", lambda a, b, c: a * b * c, names, rules,
        listed=False, **options,
    )  # fmt: skip


@given(names=st.lists(st.sampled_from(FREE + TAKEN_BY_PRIMITIVES), min_size=3, max_size=3))
def test_a_primitive_is_refused_or_has_the_right_gradient(names: list[str]) -> None:
    taken = set(names) & set(TAKEN_BY_PRIMITIVES)
    if taken or len(set(names)) < 3:
        with pytest.raises(ValueError, match="product of three: an input can't be called"):
            Primitive(
                "product of three", "N", lambda a, b, c: a, names, [lambda g: g] * 3, listed=False
            )
        return
    tensors = [ng.tensor(number, requires_grad=True) for number in (2.0, 3.0, 5.0)]
    product_of(names).apply(*tensors).backward()
    assert [tensor.grad.item() for tensor in tensors] == [15.0, 10.0, 6.0]


@pytest.mark.parametrize(
    ("name", "position"), list(itertools.product(TAKEN_BY_PRIMITIVES, range(3)))
)
def test_a_primitive_says_what_a_taken_name_means(name: str, position: int) -> None:
    names = ["a", "b", "c"]
    names[position] = name
    meaning = {"y": "the output", "g": "the cotangent"}.get(name, "")
    with pytest.raises(
        ValueError, match=f"an input can't be called '{name}': in a rule that means {meaning}"
    ):
        product_of(names)


@pytest.mark.parametrize("name", ["values", "indices", "a_shape"])
def test_names_of_outputs_and_shapes_are_taken(name: str) -> None:
    with pytest.raises(ValueError, match=f"an input can't be called '{name}'"):
        Primitive(
            "two", "N", lambda a, b: (a, b), ["a", name], [None, None],
            outputs=("values", "indices"), listed=False,
        )  # fmt: skip


@pytest.mark.parametrize("name", ["g", "y", "input_shape", "input"])
def test_names_of_static_parameters_are_checked(name: str) -> None:
    forward = eval(f"lambda array, {name}: array")
    with pytest.raises(ValueError, match=f"a parameter can't be called '{name}'"):
        Primitive("scaled", "N", forward, ["input"], [lambda g: g], listed=False)


@pytest.mark.parametrize(("name", "position"), list(itertools.product(ALWAYS_TAKEN, range(2))))
def test_an_elementwise_declaration_is_refused(name: str, position: int) -> None:
    names = ["input", "other"]
    names[position] = name
    meaning = {"y": "the output", "g": "the cotangent"}[name]
    with pytest.raises(
        ValueError,
        match=f"twice: an input can't be called '{name}': in a rule that means {meaning}",
    ):
        elementwise(
            "twice", names, (lambda g: g, lambda g: g), (REAL, REAL), doc="", formula=lambda a, b: a
        )
    assert "twice" not in CATALOGUE


def test_every_operation_of_the_catalogue_has_names_that_are_free() -> None:
    for primitive in CATALOGUE.values():
        assert not {"g", "y"} & set(primitive.inputs)
        assert np.unique(primitive.inputs).size == len(primitive.inputs)


@pytest.mark.parametrize("accepts", ["q", "fq", "F", "float", ""])
def test_kinds_of_operands_that_do_not_exist_are_refused(accepts: str) -> None:
    with pytest.raises(ValueError, match="accepts is some of NumPy's kinds"):
        unary("kinds_of_operands", lambda g: g, domain=REAL, accepts=accepts, doc=".")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"kind": "other"}, "kind must be one of ('same', 'float', 'bool', 'real'), not"),
    "domains": ({"domains": (REAL,)}, "wrong: every operand needs a domain to draw test points"),
    "too many domains": ({"domains": (REAL,) * 3}, "wrong: every operand needs a domain to draw"),
    "rules": ({"vjp": (None,)}, "wrong: every operand needs a rule, or None"),
    "too many rules": ({"vjp": (None,) * 3}, "wrong: every operand needs a rule, or None"),
    "what rules name": (
        {"vjp": (None, lambda g, y, input, that, this: that if g else this)},
        "wrong: a rule names ['that', 'this'], which are not operands",
    ),
    "numbers": ({"numbers": ("input",)}, "wrong: the parameters ('input',) must stand last"),
    "all the numbers": (
        {"numbers": ("other", "input")},
        "wrong: the parameters ('other', 'input') must stand last",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_declaration_that_does_not_fit_together_is_refused(what: str) -> None:
    options, words = WRONG[what]
    declared: dict[str, Any] = {"vjp": (None, None), "domains": (REAL, REAL), **options}
    with pytest.raises(ValueError) as error:
        elementwise("wrong", ("input", "other"), doc="", formula=lambda a, b: a, **declared)
    assert str(error.value).startswith(words)
    assert "wrong" not in CATALOGUE


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        (3, TypeError, "the name of an operation is a str, not int"),
        ("class", ValueError, "an operation can't be called 'class': Python has no such names"),
        ("a b", ValueError, "an operation can't be called 'a b': Python has no such names"),
        ("exp", ValueError, "numgrad has exp already, as PyTorch or NumPy may have: declare your"),
    ],
)
def test_names_that_nobody_could_write_or_that_are_ours_are_refused(
    name: Any, kind: Any, words: str
) -> None:
    with pytest.raises(kind) as error:
        check_name(name)
    assert str(error.value).startswith(words)


_DECLARE = "from numgrad.ops.core.catalogue import CATALOGUE, check_name, enter\n"


def test_our_own_names_may_be_declared_only_while_ours_are_loaded() -> None:
    """What declares is the innermost module that is being imported, whoever asked for that."""
    own, others = {"__name__": "numgrad.ops.pointwise.exponential"}, {"__name__": "numgraded"}
    for line in ("check_name('exp')", "enter(CATALOGUE['exp'])"):
        exec(_DECLARE + line, dict(own))  # imported anew, where that was interrupted
        with pytest.raises(ValueError, match="numgrad has exp already"):
            exec(_DECLARE + line, dict(others))
        nested = f"exec({_DECLARE + line!r}, {{'__name__': {others['__name__']!r}}})"
        with pytest.raises(ValueError, match="numgrad has exp already"):
            exec(nested, dict(own))
    with pytest.raises(ValueError, match="the catalogue has a primitive called exp already"):
        exec(_DECLARE + "enter(CATALOGUE['exp'])", {"__name__": "numgrad.ops.pointwise.rounding"})
    with pytest.raises(ValueError, match="numgrad has exp already"):
        check_name("exp")


@pytest.mark.parametrize("own", ["y", "g"])
@pytest.mark.parametrize("count", [1, 2])
def test_what_a_formula_and_a_rule_mean_by_a_name_is_the_same(own: str, count: int) -> None:
    """Else gradients would be wrong without a word."""
    operands = [own, "other"][:count]
    formula = eval(f"lambda {', '.join(operands)}: {' * '.join(operands)}")
    rule = (lambda g: g) if own == "g" else (lambda g, y: g * y)
    options: dict[str, Any] = {"formula": formula, "accepts": "f", "doc": "Twice."}
    with pytest.raises(ValueError, match=f"the formula calls an operand '{own}', which in a rule"):
        elementwise(
            "twofold", ["input", "other"][:count], [rule] * count, [REAL] * count, **options
        )
    assert "twofold" not in CATALOGUE


def test_ctrl_c_waits_until_a_package_of_operations_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halfway").mkdir()
    (tmp_path / "halfway" / "__init__.py").write_text("done = []\n")
    for name in ("one", "two"):
        (tmp_path / "halfway" / f"{name}.py").write_text(
            "import signal\n"
            "from halfway import done\n"
            "signal.raise_signal(signal.SIGINT)\n"
            "for _ in range(3): done.append(__name__)\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            load_files("halfway", ["one", "two"])
        assert len(importlib.import_module("halfway").done) == 6
    finally:
        signal.signal(signal.SIGINT, before)
        for name in ("halfway", "halfway.one", "halfway.two"):
            sys.modules.pop(name, None)
