"""Recurrent networks of several layers and both directions: gru, lstm, rnn_tanh, rnn_relu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numgrad.graph.tensor import Tensor
from numgrad.ops.linalg.linalg import matmul
from numgrad.ops.linalg.permuting import t, transpose
from numgrad.ops.movement.joining import cat, stack
from numgrad.ops.movement.splitting import unbind
from numgrad.ops.nn.cells import gru_step, linear_part, lstm_step
from numgrad.ops.nn.dropping import dropped
from numgrad.ops.pointwise.activation import relu
from numgrad.ops.pointwise.trigonometric import tanh
from numgrad.ops.signatures.declared import declare

__all__: list[str] = []

State = tuple[Tensor, ...]  # what a step hands on: of an LSTM the output and the cell's state


class _Weights(NamedTuple):
    """What a layer is made of, in one direction."""

    of_input: Tensor
    of_hidden: Tensor
    input_bias: Tensor | None
    hidden_bias: Tensor | None
    of_output: Tensor | None  # of an LSTM whose output is a projection


Step = Callable[[Tensor, State, _Weights], State]


def _gru(x: Tensor, state: State, by: _Weights) -> State:
    return (gru_step(x, linear_part(state[0], by.of_hidden, by.hidden_bias), state[0]),)


def _lstm(x: Tensor, state: State, by: _Weights) -> State:
    gates = linear_part(state[0], by.of_hidden, by.hidden_bias) + x
    output, cell = lstm_step(gates, state[1])
    return (output if by.of_output is None else matmul(output, t(by.of_output))), cell


def _elman(function: Callable[..., Tensor]) -> Step:
    def step(x: Tensor, state: State, by: _Weights) -> State:
        return (function(linear_part(state[0], by.of_hidden, by.hidden_bias) + x),)

    return step


def _through(
    steps: Sequence[Tensor], state: State, by: _Weights, step: Step
) -> tuple[list[Tensor], State]:
    """Return what each step gives, and the last state."""
    outputs = []
    for x in steps:
        state = step(x, state, by)
        outputs.append(state[0])
    return outputs, state


def _weights(params: Sequence[Tensor], has_biases: bool, projected: bool) -> list[_Weights]:
    """Return the weights of each layer and direction."""
    count = (4 if has_biases else 2) + projected
    if len(params) % count:
        raise RuntimeError("got an incorrect number of RNN parameters")
    found = []
    for k in range(0, len(params), count):
        of_input, of_hidden = params[k : k + 2]
        to_input, to_hidden = params[k + 2 : k + 4] if has_biases else (None, None)
        projection = params[k + count - 1] if projected else None
        found.append(_Weights(of_input, of_hidden, to_input, to_hidden, projection))
    return found


class _Network(NamedTuple):
    """What is the same for all layers."""

    step: Step
    weights: list[_Weights]
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool

    def run(self, x: Tensor, states: Sequence[State]) -> tuple[Tensor, list[State]]:
        """Return the last layer's outputs, and the last state of each layer and direction.

        The steps lie along the first dim.
        """
        directions = 1 + self.bidirectional
        wanted = self.num_layers * directions
        for found, what in ((states, "hidden states"), (self.weights, "parameters")):
            if len(found) < wanted:
                raise RuntimeError(f"Expected more {what} in stacked_rnn")
        last: list[State] = []
        for layer in range(self.num_layers):
            halves = []
            for k in range(layer * directions, (layer + 1) * directions):
                by = self.weights[k]
                steps = unbind(linear_part(x, by.of_input, by.input_bias))
                turn = -1 if k > layer * directions else 1
                outputs, state = _through(steps[::turn], states[k], by, self.step)
                halves.append(stack(outputs[::turn]))
                last.append(state)
            x = halves[0] if directions == 1 else cat(halves, -1)
            if self.train and self.dropout and layer < self.num_layers - 1:
                if not 0 <= self.dropout <= 1:
                    raise RuntimeError(
                        f"dropout probability has to be between 0 and 1, but got {self.dropout:g}"
                    )
                x = dropped(x, self.dropout, True, False, channels=False, alpha=False)
        return x, last


_DOC = """Return what {what} gives for each step, and the last state{s} of each layer.

    {formula}
    The gradient is that of each step, back from the last one.

    Parameters
    ----------
    input : tensor of shape (t, n, m)
        For each of t steps n rows; of shape (n, t, m) with `batch_first`.
    hx : {hx} of shape (layers and directions, n, k)
        The first state{s}.
    params : tuple of tensors
        For each layer, and in it each direction, the matrices for input and state, then their
        biases if it `has_biases`{more}.
    num_layers
        How many layers there are; each takes what that before gives.
    dropout
        The probability with which numbers between two layers are set to 0, if `train`.
    bidirectional
        Whether each layer has a second half, which runs from the last step to the first one.

    Returns
    -------
    output : tensor of shape (t, n, k), twice that k if it is bidirectional
    {last} of shape (layers and directions, n, k)

    Raises
    ------
    RuntimeError
        If lengths or shapes do not fit, or there is no step.

    >>> import numgrad as ng
    >>> one = ng.ones(1, 1, 1)
    >>> {example}
    """


def _make(name: str, step: Step, kind: str, **words: str) -> None:
    is_lstm = name == "lstm"

    def rule(
        input: Tensor,
        hx: Any,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        given = hx if is_lstm else [hx]
        if is_lstm and len(given) != 2:
            raise RuntimeError("lstm expects two hidden states")
        projected = is_lstm and given[0]._array.shape[-1:] != given[1]._array.shape[-1:]
        weights = _weights(params, has_biases, projected)
        network = _Network(step, weights, num_layers, dropout, train, bidirectional)
        if batch_first:
            input = transpose(input, 0, 1)
        if not input._array.shape[0]:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        states: list[State] = list(zip(*map(unbind, given), strict=True))
        output, last = network.run(input, states)
        if batch_first:
            output = transpose(output, 0, 1)
        return output, *(stack(parts) for parts in zip(*last, strict=True))

    rule.__name__ = rule.__qualname__ = f"_{name}"
    rule.__doc__ = _DOC.format(**words)
    declare(
        f"{name}(Tensor input, {kind} hx, Tensor[] params, bool has_biases, int num_layers, "
        "float dropout, bool train, bool bidirectional, bool batch_first)",
        method=False,
    )(rule)


_ONE = {"s": "", "hx": "tensor", "more": "", "last": "h_n : tensor"}
_make(
    "gru",
    _gru,
    "Tensor",
    what="a gated recurrent unit",
    formula="A step is that of `gru_cell`. Cho and others, arXiv 1406.1078.",
    example="""ng.gru(one, 2 * one, (ng.zeros(3, 1),) * 2, False, 1, 0.0, False, False, False)[1]
    tensor([[[1.]]])""",
    **_ONE,
)
_make(
    "lstm",
    _lstm,
    "Tensor[]",
    what="a long short-term memory",
    formula="A step is that of `lstm_cell`. Hochreiter and Schmidhuber, 1997.",
    s="s",
    hx="two tensors",
    more=", and one that the output is multiplied by if the states' lengths differ",
    last="h_n, c_n : tensors",
    example="""hx, params = (one, 4 * one), (ng.zeros(4, 1),) * 2
    >>> ng.lstm(one, hx, params, False, 1, 0.0, False, False, False)[2]
    tensor([[[2.]]])""",
)
for _word, _function, _result in (("tanh", tanh, "1.0000"), ("relu", relu, "7.")):
    _make(
        f"rnn_{_word}",
        _elman(_function),
        "Tensor",
        what="a simple recurrent network",
        formula=f"A step is that of `rnn_{_word}_cell`. Elman, Cognitive Science 14, 1990.",
        example=f"""params = ng.ones(1, 1), 3 * ng.ones(1, 1)
    >>> ng.rnn_{_word}(one, 2 * one, params, False, 1, 0.0, False, False, False)[1]
    tensor([[[{_result}]]])""",
        **_ONE,
    )
