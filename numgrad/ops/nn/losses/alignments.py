"""Connectionist temporal classification: ctc_loss, of labels that frames are not aligned with."""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.base.float_errors import silent
from numgrad.graph.tensor import Tensor, fresh, wrap
from numgrad.kernels import alignments
from numgrad.ops.core.catalogue import CATALOGUE
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.core.run_time import at_run_time
from numgrad.ops.creation.creation import full, zeros
from numgrad.ops.creation.ranges import arange
from numgrad.ops.indexing.gathering import gather
from numgrad.ops.indexing.scattering import scatter_add
from numgrad.ops.movement.joining import cat, stack
from numgrad.ops.movement.shape import reshape
from numgrad.ops.movement.unit_dims import squeeze, unsqueeze
from numgrad.ops.nn.losses.reduced import reduced, reduction_of
from numgrad.ops.pointwise.exponential import exp
from numgrad.ops.pointwise.selection import clamp_min, where
from numgrad.ops.reduction.reductions import mean
from numgrad.ops.reduction.reductions import sum as sum_
from numgrad.ops.reduction.softmax import log_softmax, softmax
from numgrad.ops.signatures.declared import declare

__all__ = ["ctc_loss", "losses_of"]

# In the place of -inf, of which differences are nan: exp of it is 0, and so is that of its double.
_IMPOSSIBLE = -1e30

# --- derivatives of the gradient ------------------------------------------------------------------


def _shifted(x: Tensor, places: int) -> Tensor:
    """Return rows moved by some places, with what never happens in those that become free."""
    rows, count = x._array.shape
    width = min(abs(places), count)
    free = full((rows, width), _IMPOSSIBLE, dtype=x.dtype)
    if places > 0:
        return cat((free, x[:, : count - width]), 1)
    return cat((x[:, width:], free), 1)


def _states(labels: Tensor, lengths: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """Return the label of each state, and which states a sequence has."""
    if labels._array.ndim == 1:
        total = labels._array.shape[0]
        starts = unsqueeze(lengths.cumsum(0) - lengths, 1)
        places = (starts + arange(max(total, 1))).clamp(max=max(total - 1, 0))
        labels = labels[places] if total else places * 0
    count, length = labels._array.shape
    rows = where(arange(length) < unsqueeze(lengths, 1), labels, blank)
    blanks = full((count, length), blank, dtype=rows.dtype)
    both = reshape(stack((blanks, rows), 2), (count, 2 * length))
    states = cat((both, full((count, 1), blank, dtype=rows.dtype)), 1)
    return states, arange(2 * length + 1) <= unsqueeze(2 * lengths, 1)


class _Paths:
    """The sums over paths of `numgrad.kernels.alignments` on tensors, and their tangents."""

    def __init__(self, g: Tensor, logs: Tensor, states: Tensor, inside: Tensor) -> None:
        self.states, self.inside = states, inside
        self.logs = [self._of_states(each, _IMPOSSIBLE) for each in logs.unbind(0)]
        self.tangents = [self._of_states(each, 0.0) for each in g.unbind(0)]
        behind = _shifted(where(inside, states, -1).to(logs.dtype), 2)
        self.skips = behind != states.to(logs.dtype)
        # A sequence ends in its last two states.
        count = unsqueeze(sum_(inside.long(), 1), 1)
        self.ends = where(inside & (arange(inside._array.shape[1]) >= count - 2), 0.0, _IMPOSSIBLE)

    def _of_states(self, frame: Tensor, otherwise: float) -> Tensor:
        return where(self.inside, gather(frame, 1, self.states), otherwise)

    def _step(self, x: Tensor, tangent: Tensor, forward: bool) -> tuple[Tensor, Tensor]:
        """Return the sums, and their tangents, of what leads to each state, or from it."""
        sign = 1 if forward else -1
        skips = self.skips if forward else _shifted(self.skips.to(x.dtype), -2) > 0
        ways = [x, _shifted(x, sign), where(skips, _shifted(x, 2 * sign), _IMPOSSIBLE)]
        moved = [tangent, _shifted(tangent, sign), _shifted(tangent, 2 * sign)]
        three = clamp_min(stack(ways, 0), _IMPOSSIBLE)
        return three.logsumexp(0), sum_(softmax(three, 0) * stack(moved, 0), 0)

    def shares(self, frames: Tensor) -> list[Tensor]:
        """Return the tangents of the shares that states have in each frame, of all paths."""
        last = unsqueeze(frames, 1)
        first = arange(self.inside._array.shape[1]) < 2
        x, tangent = where(first, self.logs[0], _IMPOSSIBLE), where(first, self.tangents[0], 0.0)
        ahead = [(x, tangent)]
        for t in range(1, len(self.logs)):
            further, moved = self._step(x, tangent, True)
            goes_on = last > t
            x = where(goes_on, further + self.logs[t], x)
            tangent = where(goes_on, moved + self.tangents[t], tangent)
            ahead.append((x, tangent))
        ending = clamp_min(x + self.ends, _IMPOSSIBLE)
        total = ending.logsumexp(1, True)
        of_total = sum_(softmax(ending, 1) * tangent, 1, True)
        x, tangent = self.ends, self.ends * 0
        found = []
        for t in range(len(self.logs) - 1, -1, -1):
            before, of_before = ahead[t]
            share = exp(clamp_min(before + x - total, _IMPOSSIBLE))
            found.append(where(last > t, share * (of_before + tangent - of_total), 0.0))
            if t:
                further, moved = self._step(x + self.logs[t], tangent + self.tangents[t], False)
                x, tangent = where(last > t, further, x), where(last > t, moved, tangent)
        return found[::-1]


def _rule_of_slopes(
    g: Tensor,
    logs: Tensor,
    labels: Tensor,
    frames: Tensor,
    lengths: Tensor,
    blank: int,
    zero: bool,
) -> Tensor:
    """Return the product with the derivative of the shares of classes, which is symmetric."""
    count, rows, classes = logs._array.shape
    counts = reshape(arange(count), (-1, 1, 1)) < reshape(frames, (-1, 1))
    if zero:
        loss = _LOSS.apply(logs.detach(), labels, frames, lengths, blank=blank, zero_infinity=True)
        counts = counts & reshape(loss < np.inf, (-1, 1))
    g = where(counts, g, 0.0)
    states, inside = _states(labels, lengths, blank)
    nothing = zeros((rows, classes), dtype=logs.dtype)
    found = [
        scatter_add(nothing, 1, states, each)
        for each in _Paths(g, logs, states, inside).shares(frames)
    ]
    result: Tensor = g * exp(logs) - where(counts, stack(found, 0), 0.0)
    return result


# --- the loss -------------------------------------------------------------------------------------


def _sample(make: Any) -> Any:
    def losses(input: Tensor) -> Tensor:
        labels = wrap(np.array([[1, 1, 2], [2, 0, 0]]))
        frames, lengths = wrap(np.array([5, 3])), wrap(np.array([3, 1]))
        return CATALOGUE["ctc_loss"].apply(
            log_softmax(input, 2), labels, frames, lengths, blank=0, zero_infinity=False
        )

    return losses, [make(5, 2, 3)], {}


def _losses(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    zero_infinity: bool,
) -> Any:
    """Return the losses; whether infinite ones have a gradient concerns the rule alone."""
    return alignments.negative_likelihoods(log_probs, targets, input_lengths, target_lengths, blank)


def _rule(
    g: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    zero_infinity: bool,
) -> Tensor:
    slopes = _SLOPES.apply(
        log_probs, targets, input_lengths, target_lengths, blank=blank, zero=zero_infinity
    )
    return reshape(g, (-1, 1)) * slopes


_SLOPES = Primitive(
    "ctc_loss_slopes",
    "CtcLossBackwardBackward0",
    silent(alignments.slopes),
    ["logs", "labels", "frames", "lengths"],
    [_rule_of_slopes, None, None, None],
    listed=False,
)
_LOSS = Primitive(
    "ctc_loss",
    "CtcLossBackward0",
    silent(_losses),
    ["log_probs", "targets", "input_lengths", "target_lengths"],
    [_rule, None, None, None],
    samples=[_sample],
)


def _read_lengths(given: Any, name: str) -> Tensor:
    """Return how long sequences are, as a tensor of int64."""
    if not isinstance(given, Tensor):
        return fresh(np.array(given, np.int64))
    if given._array.dtype.kind not in "iu":
        raise RuntimeError(f"{name} must be integral")
    result: Tensor = reshape(given.long(), (-1,))
    return result


_CHECKED = "(while checking arguments for ctc_loss_allocate_outputs)"


@at_run_time
def _lengths_up_to(lengths: Any, name: str, most: int) -> Any:
    """Return how long sequences are; raise unless they fit; -1 if it is their sum that has to."""
    for length in lengths.tolist():
        if length < 0:
            raise RuntimeError(
                f"Expected {name} to have value at least 0, but got value {length} {_CHECKED}"
            )
        if length > most and name == "input_lengths":
            raise RuntimeError(
                f"Expected {name} to have value at most {most}, but got value {length} {_CHECKED}"
            )
    longest = int(lengths.max(initial=0))
    if name == "target_lengths" and longest > most:
        raise RuntimeError(
            f"Expected tensor to have size at least {longest} at dimension 1, but got size {most} "
            f"for argument #2 'targets' {_CHECKED}"
        )
    if name == "concatenated" and int(lengths.sum()) != most:
        raise RuntimeError(
            f"Expected tensor to have size {int(lengths.sum())} at dimension 0, but got size "
            f"{most} for argument #2 'targets' {_CHECKED}"
        )
    return lengths


def _check(
    logs: Tensor, targets: Tensor, frames: Tensor, lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """Return both lengths; raise unless all fits."""
    if logs._array.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {logs._array.ndim}-dimensional tensor for "
            f"argument #1 'log_probs' {_CHECKED}"
        )
    given = targets._array.shape
    if len(given) not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {len(given)}-dimensional tensor for argument #2 "
            f"'targets' {_CHECKED}"
        )
    count, rows, classes = logs._array.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, each in (("input_lengths", frames), ("target_lengths", lengths)):
        if each._array.size != rows:
            raise RuntimeError(f"{name} must be of size batch_size")
    if len(given) == 2 and given[0] != rows:
        raise RuntimeError(
            f"Expected tensor to have size {rows} at dimension 0, but got size {given[0]} for "
            f"argument #2 'targets' {_CHECKED}"
        )
    words = "concatenated" if len(given) == 1 else "target_lengths"
    lengths = wrap(_lengths_up_to(lengths._array, name=words, most=given[-1]))
    return wrap(_lengths_up_to(frames._array, name="input_lengths", most=count)), lengths


def losses_of(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: str,
    zero_infinity: bool,
) -> Tensor:
    """Return what `ctc_loss` does."""
    if not log_probs._array.size:
        raise RuntimeError("log_probs tensor must not be empty")
    batched = log_probs._array.ndim == 3
    logs = log_probs if batched else unsqueeze(log_probs, 1)
    if not batched and targets._array.ndim == 1:
        targets = unsqueeze(targets, 0)
    frames = _read_lengths(input_lengths, "input_lengths")
    lengths = _read_lengths(target_lengths, "target_lengths")
    frames, lengths = _check(logs, targets, frames, lengths, blank)
    if logs._array.dtype.kind != "f" or logs._array.dtype.itemsize < 4:
        raise NotImplementedError(
            f"\"ctc_loss_cpu\" not implemented for '{log_probs.dtype.scalar_name}'"
        )
    result: Tensor = _LOSS.apply(
        logs, targets.long(), frames, lengths, blank=blank, zero_infinity=zero_infinity
    )
    if zero_infinity:
        result = where(result == np.inf, 0.0, result)
    if reduction == "mean":
        return mean(result / clamp_min(lengths, 1).to(result.dtype))
    result = reduced(result, reduction)
    return result if batched or reduction != "none" else squeeze(result, 0)


@declare(
    "ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "int blank=0, str reduction='mean', bool zero_infinity=False)",
    "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
    "int blank=0, str reduction='mean', bool zero_infinity=False)",
    function=False,
    method=False,
)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: str,
    zero_infinity: bool,
) -> Tensor:
    """Return the negative logarithm of the probability of labels that no frames are told for.

    Graves and others, 2006. The gradient is exp(log p) less the share that the paths with these
    labels have of a class in a frame: as PyTorch's, it is right for what a log-softmax gave.

    Parameters
    ----------
    log_probs : tensor of shape (T, N, C) or (T, C)
        Logarithms of the probabilities of classes in each frame, as of `log_softmax`.
    targets : tensor of ints, of shape (N, S), (S,) or (sum of target_lengths,)
        Labels, without blanks.
    input_lengths, target_lengths : tensors or sequences of ints, of shape (N,)
        How many frames and labels there are of each.
    blank
        The class that stands for no label.
    reduction
        ``"mean"``, of losses over their number of labels; ``"sum"``, or ``"none"``.
    zero_infinity
        Whether losses that are infinite, of more labels than frames have room for, are 0, with a
        gradient of 0.

    Raises
    ------
    RuntimeError
        If shapes, lengths or the blank do not fit.

    >>> import numgrad as ng
    >>> logs = ng.full((2, 1, 2), 0.5).log()
    >>> loss = ng.nn.functional.ctc_loss(logs, ng.tensor([[1]]), (2,), (1,))
    >>> ng.exp(-loss)  # of 11, 01 and 10
    tensor(0.7500)
    """
    return losses_of(
        log_probs,
        targets,
        input_lengths,
        target_lengths,
        blank,
        reduction_of(reduction),
        zero_infinity,
    )
