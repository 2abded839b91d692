"""Entries of kernels for Python: those that are written with other names are those Numba builds."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numgrad.codegen.compile import pipelines
from numgrad.codegen.compile.compile import compile_source, kernel
from numgrad.codegen.compile.wrappers import Wrappers, _Listening
from numgrad.codegen.numba_private import HAS_PIPELINES
from tests.cases import examples

pytestmark = pytest.mark.skipif(not HAS_PIPELINES, reason="kernels are compiled as by njit")

ARGUMENTS = {
    "float": 1.5,
    "int": 3,
    "bool": True,
    "complex": 1j,
    "float32 row": np.ones(4, "float32"),
    "float64 row": np.ones(4),
    "every other": np.ones(8)[::2],
    "matrix": np.ones((2, 3)),
    "transposed": np.ones((2, 3)).T,
    "pair": (2.0, np.ones(2)),
}
RESULTS = {
    "nothing": "return",
    "an argument": "return {0}",
    "a number": "return 2.5",
    "two": "return {0}, 1",
    "an error": "raise ValueError('no')",
}
_numbers = count()


class _Nowhere:
    def add_ir_module(self, module: Any) -> None:
        """Take what is only looked at."""


class _Compared(Wrappers):
    """Builds every entry, too, and remembers what was made and what was built."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[str | None, str | None]] = []

    def create(
        self,
        context: Any,
        library: Any,
        fndesc: Any,
        env: Any,
        call_helper: Any,
        release_gil: bool = False,
    ) -> None:
        built, made = _Listening(_Nowhere()), _Listening(library)
        rest = fndesc, env, call_helper, release_gil
        type(context).create_cpython_wrapper(context, built, *rest)
        constants = len(env.consts)
        super().create(context, made, *rest)
        if len(env.consts) == constants:  # else they are numbered on
            self.pairs.append((made.text, built.text))


@settings(max_examples=examples(30))
@given(
    names=st.lists(st.sampled_from(sorted(ARGUMENTS)), min_size=1, max_size=4),
    result=st.sampled_from(sorted(RESULTS)),
)
def test_an_entry_with_other_names_is_the_one_that_numba_builds(names, result):
    parameters = [f"a{position}" for position in range(len(names))]
    compared = _Compared()
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipelines, "_wrappers", compared)
        for _ in range(2):
            line = RESULTS[result].format(parameters[0])
            source = f"def f({', '.join(parameters)}):\n    {line}  # {next(_numbers)}\n"
            try:
                outcomes.append(repr(compile_source("f", source)(*[ARGUMENTS[n] for n in names])))
            except ValueError as error:
                outcomes.append(repr(error))
    assert outcomes[0] == outcomes[1]
    assert all(made == built for made, built in compared.pairs)


@pytest.mark.parametrize("names", ["bc", ("add", "sub", "mul"), ("i", "x")])
def test_functions_may_be_named_as_what_stands_in_entries(names, monkeypatch):
    monkeypatch.setattr(pipelines, "_wrappers", Wrappers())
    for number, name in enumerate(names):
        namespace: dict[str, Any] = {}
        exec(f"def {name}(a, k):\n    return a[k] + {next(_numbers) + 1000}", namespace)
        expected = namespace[name](np.arange(4.0), number)
        assert kernel(namespace[name])(np.arange(4.0), number) == expected


def test_entries_for_the_same_types_are_built_once(monkeypatch):
    wrappers = Wrappers()
    monkeypatch.setattr(pipelines, "_wrappers", wrappers)
    for _ in range(3):
        compile_source("f", f"def f(a, b):\n    a[0] = b  # {next(_numbers)}\n")(np.ones(3), 2.0)
    assert len(wrappers._texts) == 1
    with pytest.raises(TypeError, match="2"):
        compile_source("f", f"def f(a, b):\n    a[0] = b  # {next(_numbers)}\n")(np.ones(3))
