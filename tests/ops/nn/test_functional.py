"""The namespace nn.functional: its names, and softmax whose dim may be left out."""

from __future__ import annotations

import warnings
from typing import Any

import numgrad as ng
from numgrad.nn import functional


def test_every_name_is_a_function_with_an_example():
    assert functional.__all__ == sorted(functional.__all__)
    for name in functional.__all__:
        function = getattr(functional, name)
        assert callable(function)
        assert ">>> " in function.__doc__ or name.endswith("_"), name


def warned(module: Any, name: str, shape: tuple[int, ...], *arguments: Any) -> Any:
    """Return the result of a call without a dim, its warnings and whether they are here."""
    x = module.arange(float(24))[: module.ones(shape).numel()].reshape(shape)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        result = getattr(module.nn.functional, name)(x, *arguments)
    return result.tolist(), [(str(w.message), w.filename == __file__) for w in given]


def test_a_dim_that_is_left_out_is_chosen_with_a_warning_as_in_pytorch(torch):
    for name in ("softmax", "log_softmax", "softmin"):
        for shape in ((), (3,), (2, 3), (2, 3, 4), (2, 3, 2, 2)):
            ours, theirs = (warned(module, name, shape) for module in (ng, torch))
            assert ours[1] == theirs[1]
            assert ng.allclose(ng.tensor(ours[0]), ng.tensor(theirs[0]))


def test_relu_writes_where_it_is_told():
    x = ng.tensor([-1.0, 2.0])
    assert functional.relu(x) is not x
    assert functional.relu(x, inplace=True) is x
    assert x.tolist() == [0, 2]
