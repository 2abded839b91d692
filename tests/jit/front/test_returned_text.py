"""Text that a traced function makes of its tensors shows no numbers: it may not be returned."""

from __future__ import annotations

from collections import deque

import pytest

import numgrad as ng

pytestmark = pytest.mark.usefixtures("traced")

TEXTS = {
    "f-string": lambda x: f"sum: {x.sum()}",
    "with a format": lambda x: (x, f"{x.sum():.3f}"),
    "str": lambda x: [str(x), x],
    "repr": lambda x: {"text": repr(x)},
    "percent": lambda x: "%s" % x,  # noqa: UP031
    "key": lambda x: {str(x.sum()): x},
    "bytes": lambda x: str(x).encode(),
    "in a deque": lambda x: deque([f"{x}"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_of_a_traced_tensor_is_not_returned(name):
    with pytest.raises(ng.TraceError, match="format what the call gives"):
        ng.jit(TEXTS[name])(ng.ones(2))


def test_other_text_is_returned_and_a_tensor_may_be_printed(capsys):
    def function(x):
        print(x, f"{x.sum():.2f}")
        return x + 1, f"of {x.shape[0]}", {"key": "value"}

    result, text, rest = ng.jit(function)(ng.ones(2))
    assert result.tolist() == [2, 2]
    assert (text, rest) == ("of 2", {"key": "value"})
    assert capsys.readouterr().out.startswith("tensor(traced, size=(2,)")
