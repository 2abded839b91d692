"""Alignments of labels with frames: their likelihoods, and which labels frames take (CTC).

The recursions of A. Graves and others, "Connectionist temporal classification" (2006), section 4:
a sequence with a blank before, between and behind its labels is gone through in steps of none, one,
or two states (of two only between labels that differ), a step for each frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.tuning import THREAD_ELEMENTS_ALIGNMENTS
from numgrad.codegen.compile.compile import kernel
from numgrad.math import scalar
from numgrad.runtime.memory import empty
from numgrad.runtime.threads import parallel_for

__all__ = ["negative_likelihoods", "rows_of_labels", "slopes"]

Array = np.ndarray[Any, Any]


@kernel
def _states(labels, lengths, blank, states):  # type: ignore[no-untyped-def]
    """Write the label of each state: a blank at even places."""
    for n in range(states.shape[0]):
        for s in range(2 * lengths[n] + 1):
            states[n, s] = blank if s % 2 == 0 else labels[n, s // 2]


@kernel
def _sum_of_two(x, y):  # type: ignore[no-untyped-def]
    """Return the logarithm of the sum of two exponentials."""
    top = x if x > y else y
    if top == -np.inf or top != top:
        return x + y
    return top + scalar.log(scalar.exp(x - top) + scalar.exp(y - top))


@kernel
def _ahead(logs, states, frames, lengths, alphas, losses, first, last):  # type: ignore[no-untyped-def]
    """Write the logarithms of what leads to each state, and the negative one of all paths."""
    for n in range(first, last):
        count = 2 * lengths[n] + 1
        if frames[n] == 0:
            losses[n] = -0.0 if lengths[n] == 0 else np.inf
            continue
        for s in range(count):
            alphas[n, 0, s] = logs[0, n, states[n, s]] if s < 2 else -np.inf
        for t in range(1, frames[n]):
            for s in range(count):
                total = alphas[n, t - 1, s]
                if s > 0:
                    total = _sum_of_two(total, alphas[n, t - 1, s - 1])
                if s > 1 and states[n, s] != states[n, s - 2]:
                    total = _sum_of_two(total, alphas[n, t - 1, s - 2])
                alphas[n, t, s] = total + logs[t, n, states[n, s]]
        total = alphas[n, frames[n] - 1, count - 1]
        if count > 1:
            total = _sum_of_two(total, alphas[n, frames[n] - 1, count - 2])
        losses[n] = -total


@kernel
def _behind(logs, states, frames, lengths, alphas, losses, betas, out, zero, first, last):  # type: ignore[no-untyped-def]
    """Write exp(log p) less the share of paths with a label in a frame; 0 behind the frames."""
    for n in range(first, last):
        count = 2 * lengths[n] + 1
        if zero and losses[n] == np.inf:
            continue
        for back in range(frames[n]):
            t = frames[n] - 1 - back
            now, before = t % 2, (t + 1) % 2
            for s in range(count):
                if back == 0:
                    total = -np.inf if s < count - 2 else 0.0
                else:
                    total = betas[n, before, s]
                    if s < count - 1:
                        total = _sum_of_two(total, betas[n, before, s + 1])
                    if s < count - 2 and states[n, s] != states[n, s + 2]:
                        total = _sum_of_two(total, betas[n, before, s + 2])
                betas[n, now, s] = total + logs[t, n, states[n, s]]
            for c in range(logs.shape[2]):
                out[t, n, c] = -np.inf
            for s in range(count):
                c = states[n, s]
                out[t, n, c] = _sum_of_two(out[t, n, c], alphas[n, t, s] + betas[n, now, s])
            for c in range(logs.shape[2]):
                share = scalar.exp(out[t, n, c] + losses[n] - logs[t, n, c])
                out[t, n, c] = scalar.exp(logs[t, n, c]) - share


def rows_of_labels(labels: Array, lengths: Array, total: int, blank: int, classes: int) -> Array:
    """Return labels as rows, those that stand one behind the other taken apart by their lengths.

    Raises
    ------
    IndexError
        If one is no class.
    """
    if labels.ndim == 1:
        starts = np.cumsum(lengths) - lengths
        places = starts[:, None] + np.arange(max(int(lengths.max(initial=0)), 1))
        labels = labels[np.minimum(places, max(total - 1, 0))] if total else places * 0
    inside = np.arange(labels.shape[1]) < lengths[:, None]
    if (inside & ((labels < 0) | (labels >= classes))).any():
        raise IndexError(f"ctc_loss: a label is no class; there are {classes}, 0 the first of them")
    return np.ascontiguousarray(np.where(inside, labels, blank), np.int64)


def _prepared(
    logs: Array, labels: Array, frames: Array, lengths: Array, blank: int
) -> tuple[Array, Array, Array, Array]:
    """Return the arguments of the kernels: rows, states, and memory for what leads to them."""
    rows = rows_of_labels(labels, lengths, labels.size, blank, logs.shape[2])
    states = np.empty((len(lengths), 2 * int(lengths.max(initial=0)) + 1), np.int64)
    _states(rows, lengths, blank, states)
    alphas = empty((len(lengths), logs.shape[0], states.shape[1]), logs.dtype)
    return np.ascontiguousarray(logs), states, alphas, empty((len(lengths),), logs.dtype)


def _shared(function: Any, logs: Array, states: Array, *arguments: Any) -> None:
    """Run a kernel on sequences, which threads share."""
    work = max(logs.shape[0] * states.shape[1], 1)
    grain = max(1, THREAD_ELEMENTS_ALIGNMENTS // work)
    parallel_for(lambda a, b: function(logs, states, *arguments, a, b), len(states), grain)


def negative_likelihoods(
    logs: Array, labels: Array, frames: Array, lengths: Array, blank: int
) -> Array:
    """Return the negative logarithms of the likelihood of label sequences.

    Parameters
    ----------
    logs : array of shape (frames, n, classes)
        Logarithms of probabilities.
    labels : array of int64, of shape (n, length) or (total,)
    frames, lengths : arrays of int64, of shape (n,)
        How many frames and labels each sequence has.
    blank : int
        The class that stands for no label.

    Examples
    --------
    >>> logs = np.log(np.full((2, 1, 2), 0.5))
    >>> one = np.array([1])
    >>> np.exp(-negative_likelihoods(logs, one[None], 2 * one, one, 0))  # 11, 01, 10
    array([0.75])
    """
    whole, states, alphas, losses = _prepared(logs, labels, frames, lengths, blank)
    _shared(_ahead, whole, states, frames, lengths, alphas, losses)
    return losses


def slopes(
    logs: Array, labels: Array, frames: Array, lengths: Array, blank: int, zero: bool
) -> Array:
    """Return exp(logs) less the probabilities that paths with a label sequence take a class.

    That is the derivative of `negative_likelihoods` for what `logs` is the log-softmax of. Behind
    the frames of a sequence it is 0, and with `zero` where the likelihood is 0.

    Examples
    --------
    >>> logs = np.log(np.full((2, 1, 2), 0.5))
    >>> one = np.array([1])
    >>> slopes(logs, one[None], 2 * one, one, 0, False)[0].round(3)
    array([[ 0.167, -0.167]])
    """
    whole, states, alphas, losses = _prepared(logs, labels, frames, lengths, blank)
    _shared(_ahead, whole, states, frames, lengths, alphas, losses)
    betas = empty((len(lengths), 2, states.shape[1]), logs.dtype)
    out = np.zeros(logs.shape, logs.dtype)
    _shared(_behind, whole, states, frames, lengths, alphas, losses, betas, out, zero)
    return out
