"""Cells of recurrent networks: one step of an Elman network, of a GRU, of an LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from numgrad.graph.tensor import Tensor
from numgrad.ops.linalg.linalg import matmul
from numgrad.ops.linalg.permuting import t
from numgrad.ops.movement.splitting import chunk
from numgrad.ops.pointwise.activation import relu, sigmoid
from numgrad.ops.pointwise.trigonometric import tanh
from numgrad.ops.signatures.declared import declare

__all__ = ["gru_step", "linear_part", "lstm_step"]

_WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


def _check_input(input: Tensor, w_ih: Tensor) -> None:
    size = w_ih._array.shape[1]
    if input._array.shape[1] != size:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input._array.shape[1]} expected {size}"
        )


def _check_hidden(input: Tensor, hx: Tensor, size: int, number: int) -> None:
    rows, own = input._array.shape[0], hx._array.shape
    if own[0] != rows:
        raise RuntimeError(
            f"Input batch size {rows} doesn't match hidden{number} batch size {own[0]}"
        )
    if own[1] != size:
        raise RuntimeError(
            f"hidden{number} has inconsistent hidden_size: got {own[1]}, expected {size}"
        )


def _check_weights(w_ih: Tensor, w_hh: Tensor, gates: int) -> None:
    size = w_hh._array.shape[1]
    for name, each in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if each._array.shape[0] != gates * size:
            raise RuntimeError(
                f"{name} first dim must be {gates} * hidden_size = {gates * size}, but got "
                f"{each._array.shape[0]}"
            )


def linear_part(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the product with a matrix, and the bias added."""
    found: Tensor = matmul(x, t(weight))
    return found if bias is None else found + bias


def gru_step(of_input: Tensor, of_hidden: Tensor, hx: Tensor) -> Tensor:
    """Return the state behind hx, of the linear parts of the three gates."""
    reset, update, new = chunk(of_input, 3, 1)
    reset_h, update_h, new_h = chunk(of_hidden, 3, 1)
    candidate = tanh(new + sigmoid(reset + reset_h) * new_h)
    result: Tensor = (hx - candidate) * sigmoid(update + update_h) + candidate
    return result


def lstm_step(gates: Tensor, cx: Tensor) -> tuple[Tensor, Tensor]:
    """Return output and state behind cx, of the linear parts of the four gates."""
    entry, forget, cell, output = chunk(gates, 4, 1)
    state = sigmoid(forget) * cx + sigmoid(entry) * tanh(cell)
    return sigmoid(output) * tanh(state), state


_ELMAN = """Return {word}(W x + b + V h + c), the next state of a simple recurrent network.

    The gradient is that of {word}, a product with each of what it is made of.

    Parameters
    ----------
    input : tensor of shape (n, m)
    hx : tensor of shape (n, k)
        The state before.
    w_ih, w_hh : tensors of shape (k, m) and (k, k)
    b_ih, b_hh : tensors of shape (k,), optional

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> one = ng.ones(1, 1)
    >>> ng.rnn_{word}_cell(one, 2 * one, one, 3 * one)
    tensor([[{result}]])
    """


def _make_elman(word: str, function: Callable[..., Tensor], result: str) -> None:
    def rule(
        input: Tensor,
        hx: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None,
        b_hh: Tensor | None,
    ) -> Tensor:
        _check_weights(w_ih, w_hh, 1)
        _check_input(input, w_ih)
        _check_hidden(input, hx, w_hh._array.shape[1], 0)
        return function(linear_part(hx, w_hh, b_hh) + linear_part(input, w_ih, b_ih))

    name = f"rnn_{word}_cell"
    rule.__name__ = rule.__qualname__ = f"_{name}"
    rule.__doc__ = _ELMAN.format(word=word, result=result)
    declare(f"{name}(Tensor input, Tensor hx, {_WEIGHTS})", method=False, dispatched=True)(rule)


_make_elman("tanh", tanh, "1.0000")
_make_elman("relu", relu, "7.")


@declare(f"gru_cell(Tensor input, Tensor hx, {_WEIGHTS})", method=False, dispatched=True)
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> Tensor:
    """Return the next state of a gated recurrent unit: (h - n) z + n, by gates r, z and n.

    r and z are sigmoids of linear functions of x and h, n = tanh(W x + b + r (V h + c)). Cho and
    others, arXiv 1406.1078. The gradient follows from these products.

    Parameters
    ----------
    input : tensor of shape (n, m)
    hx : tensor of shape (n, k)
        The state before.
    w_ih, w_hh : tensors of shape (3 k, m) and (3 k, k)
        For r, z and n, one below the other.
    b_ih, b_hh : tensors of shape (3 k,), optional

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> ng.gru_cell(ng.ones(1, 1), 2 * ng.ones(1, 1), ng.zeros(3, 1), ng.zeros(3, 1))
    tensor([[1.]])
    """
    _check_input(input, w_ih)
    _check_hidden(input, hx, w_hh._array.shape[1], 0)
    _check_weights(w_ih, w_hh, 3)
    return gru_step(linear_part(input, w_ih, b_ih), linear_part(hx, w_hh, b_hh), hx)


@declare(f"lstm_cell(Tensor input, Tensor[] hx, {_WEIGHTS})", method=False)
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return the next output and state of a long short-term memory: o tanh(c), and c = f c + i g.

    i, f and o are sigmoids of linear functions of x and the output before, g is such a tanh.
    Hochreiter and Schmidhuber, 1997. The gradient follows from these products.

    Parameters
    ----------
    input : tensor of shape (n, m)
    hx : two tensors of shape (n, k)
        The output and the state before.
    w_ih, w_hh : tensors of shape (4 k, m) and (4 k, k)
        For i, f, g and o, one below the other.
    b_ih, b_hh : tensors of shape (4 k,), optional

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> h = ng.ones(1, 1)
    >>> ng.lstm_cell(h, (h, 4 * h), ng.zeros(4, 1), ng.zeros(4, 1))[1]
    tensor([[2.]])
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    _check_input(input, w_ih)
    _check_weights(w_ih, w_hh, 4)
    for number, each in enumerate(hx):
        _check_hidden(input, each, w_hh._array.shape[1], number)
    gates = linear_part(input, w_ih, b_ih) + linear_part(hx[0], w_hh, b_hh)
    return lstm_step(gates, hx[1])
