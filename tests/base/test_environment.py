"""Environment variables: what is no word that they take is refused, by name."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numgrad.base.environment import words_of
from tests.children import run

# What reads each of them in a process of its own.
READ = {
    "NUMGRAD_NUMBA": "import numgrad",
    "NUMGRAD_LOG": "import numgrad as ng; ng.jit(lambda x: x * 2)(ng.ones(3))",
    "NUMGRAD_NUM_THREADS": "import numgrad as ng; ng.get_num_threads()",
}


@given(
    st.lists(st.sampled_from(["plain", "loud", " plain ", ""]), max_size=4),
    st.text(string.ascii_letters, min_size=1),
)
def test_words_that_are_known_are_returned(given: list[str], odd: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMGRAD_WORDS", ",".join(given))
        expected = {word.strip() for word in given} - {""}
        assert words_of("NUMGRAD_WORDS", ["plain", "loud"]) == expected
        if odd not in ("plain", "loud"):
            patch.setenv("NUMGRAD_WORDS", ",".join([*given, odd]))
            with pytest.raises(ValueError, match="NUMGRAD_WORDS expects 'plain' or 'loud', but"):
                words_of("NUMGRAD_WORDS", ["plain", "loud"])


@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("variable", READ)
def test_a_bad_value_is_an_error_that_names_the_variable(variable: str) -> None:
    ended = run(READ[variable], fresh=True, **{variable: "foo"})
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ValueError: {variable} expects ")
    assert last.endswith(", but got 'foo'")
