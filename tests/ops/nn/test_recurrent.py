"""gru, lstm, rnn_tanh and rnn_relu of several layers, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng

GATES = {"rnn_tanh": 1, "rnn_relu": 1, "gru": 3, "lstm": 4}
STEPS, ROWS, WIDTH, SIZE = 3, 2, 4, 3


def arrays(
    name: str, layers: int, both: bool, biases: bool, projected: int, dtype: str
) -> tuple[list[Any], int]:
    """Return input, first states and parameters, and how many of these are states."""
    random = np.random.default_rng(layers)
    directions, out = 1 + both, projected or SIZE
    shapes: list[tuple[int, ...]] = [(STEPS, ROWS, WIDTH), (layers * directions, ROWS, out)]
    if name == "lstm":
        shapes.append((layers * directions, ROWS, SIZE))
    states = len(shapes) - 1
    for layer in range(layers):
        for _ in range(directions):
            rows, width = GATES[name] * SIZE, WIDTH if layer == 0 else out * directions
            shapes += [(rows, width), (rows, out), *[(rows,)] * (2 * biases)]
            if projected:
                shapes.append((projected, SIZE))
    return [random.uniform(-1, 1, shape).astype(dtype) for shape in shapes], states


def outputs(library: Any, name: str, values: list[Any], states: int, *options: Any) -> list[Any]:
    hx = values[1 : 1 + states]
    given = (hx if name == "lstm" else hx[0], values[1 + states :])
    return list(getattr(library, name)(values[0], *given, *options))


CASES = [
    # layers, both directions, biases, batch_first, the length of an output that is projected
    (1, False, True, False, 0),
    (1, False, False, True, 0),
    (2, True, True, False, 0),
    (2, True, False, True, 2),
]


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("name", GATES)
def test_values_and_gradients_are_pytorchs(torch: Any, name: str) -> None:
    for layers, both, biases, batch_first, projected in CASES:
        projected = projected if name == "lstm" else 0
        for dtype in ("float64", "float32"):
            values, states = arrays(name, layers, both, biases, projected, dtype)
            if batch_first:
                values[0] = np.ascontiguousarray(values[0].swapaxes(0, 1))
            found = []
            for library in (ng, torch):
                inputs = [library.from_numpy(value).requires_grad_() for value in values]
                options = (biases, layers, 0.5, False, both, batch_first)
                results = outputs(library, name, inputs, states, *options)
                total = sum((k + 1) * (y * y).sum() for k, y in enumerate(results))
                gradients = library.autograd.grad(total, inputs)
                found.append([each.detach().numpy() for each in (*results, *gradients)])
            exact = 1e-12 if dtype == "float64" else 2e-5
            for mine, theirs in zip(*found, strict=True):
                assert mine.dtype == theirs.dtype == dtype
                np.testing.assert_allclose(mine, theirs, rtol=exact, atol=exact)


def test_what_is_refused_and_how_is_pytorchs(torch: Any) -> None:
    said: list[list[str]] = [[], []]
    for library, words in zip((ng, torch), said, strict=True):
        for name in GATES:
            values, states = arrays(name, 1, False, True, 0, "float64")
            tensors = [library.from_numpy(value) for value in values]
            state = [tensors[0], *[each[:0] for each in tensors[1 : 1 + states]]]
            for wrong, *options in (
                (tensors[:-1], True, 1, 0.0, False, False, False),
                (tensors, True, 2, 0.0, False, False, False),
                ([*state, *tensors[1 + states :]], True, 1, 0.0, False, False, False),
                ([tensors[0][:0], *tensors[1:]], True, 1, 0.0, False, False, False),
                ([tensors[0][..., :1], *tensors[1:]], True, 1, 0.0, False, False, False),
            ):
                with pytest.raises(RuntimeError) as caught:
                    outputs(library, name, wrong, states, *options)
                words.append(f"{name}: {caught.value}")
    assert said[0] == said[1]


@pytest.mark.sampled(0.3)
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_second_order_tangents_and_traces_are_those_of_the_steps(name: str) -> None:
    values, states = arrays(name, 1, True, True, 0, "float64")
    tensors = [ng.from_numpy(value) for value in values]

    def loss(*inputs: Any) -> Any:
        y = outputs(ng, name, list(inputs), states, True, 1, 0.0, False, True, False)
        return sum((each * each).sum() for each in y)

    inputs = [each.requires_grad_() for each in tensors]
    assert ng.autograd.gradgradcheck(loss, inputs, fast_mode=True)
    given = [each.detach() for each in tensors]
    gradient = ng.func.grad(loss, argnums=(0, 1))
    for compiled, eager in zip(ng.jit(gradient)(*given), gradient(*given), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-10, atol=1e-12)
    _, tangent = ng.func.jvp(loss, tuple(given), tuple(given))
    slopes = ng.func.grad(loss, argnums=tuple(range(len(given))))(*given)
    dots = sum(float((g * x).sum()) for g, x in zip(slopes, given, strict=True))
    np.testing.assert_allclose(float(tangent), dots, rtol=1e-10)


def test_numbers_between_layers_are_dropped_in_training_alone() -> None:
    values, states = arrays("gru", 2, False, True, 0, "float64")
    tensors = [ng.from_numpy(value) for value in values]
    whole, trained, none = (
        outputs(ng, "gru", tensors, states, True, 2, p, train, False, False)[0]
        for p, train in ((0.5, False), (1.0, True), (0.0, True))
    )
    assert ng.equal(whole, none)
    assert not ng.equal(trained, whole)
    layers = [tensors[:2], tensors[2:6], tensors[6:]]
    second = ng.zeros(STEPS, ROWS, SIZE, dtype=ng.float64), tensors[1][1:]
    expected = ng.gru(*second, layers[2], True, 1, 0.0, False, False, False)[0]
    assert ng.equal(trained, expected)
    with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1"):
        outputs(ng, "gru", tensors, states, True, 2, 1.5, True, False, False)


@pytest.mark.parametrize("name", GATES)
def test_dropout_stands_between_layers_alone(name: str) -> None:
    """Dropped wholly, what the first layer gives is zeros to the second; not if it is the last."""
    values, states = arrays(name, 2, False, True, 0, "float64")
    tensors = [ng.from_numpy(value) for value in values]
    dropped = outputs(ng, name, tensors, states, True, 2, 1.0, True, False, False)
    second = 1 + states + 4
    tensors[second] = ng.zeros_like(tensors[second])  # what the second layer makes of its input
    unread = outputs(ng, name, tensors, states, True, 2, 0.0, True, False, False)
    assert dropped[0].equal(unread[0])
    alone = [ng.from_numpy(value) for value in arrays(name, 1, False, True, 0, "float64")[0]]
    first = outputs(ng, name, alone, states, True, 1, 1.0, True, False, False)
    assert first[0].equal(outputs(ng, name, alone, states, True, 1, 0.0, True, False, False)[0])
    with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1"):
        outputs(ng, name, tensors, states, True, 2, 1.5, True, False, False)
