"""Losses as functions of torch itself, where a number says how they are reduced.

``torch.kl_div`` and its like take 0, 1 or 2 for what `nn.functional` calls none, mean and sum. The
default is 0, whatever PyTorch's stubs say.
"""

from __future__ import annotations

from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.nn.alignments import losses_of
from numgrad.ops.nn.classes import divergences, logit_losses
from numgrad.ops.nn.margins import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    triplet_margin_loss,
)
from numgrad.ops.nn.reduced import reduced
from numgrad.ops.nn.regression import poisson_nll_loss
from numgrad.ops.signatures.declared import declare

__all__: list[str] = []

_REDUCTIONS = ("none", "mean", "sum")


def _word(reduction: int) -> str:
    """Return what a number stands for; any other leaves the elements as they are."""
    return _REDUCTIONS[reduction] if 0 <= reduction < 3 else "none"


@declare(
    "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, "
    "Tensor? pos_weight=None, int reduction=0)",
    method=False,
    dispatched=True,
)
def _logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: int,
) -> Tensor:
    """Return the binary cross entropy of sigmoid(x); see `nn.functional`.

    The gradient is sigmoid(x) - t, over the number of elements.

    Parameters
    ----------
    reduction
        0 for none, as PyTorch has it here, 1 for the mean, 2 for the sum.

    >>> import numgrad as ng
    >>> ng.binary_cross_entropy_with_logits(ng.tensor([0.0, 800.0]), ng.ones(2), reduction=1)
    tensor(0.3466)
    """
    return reduced(logit_losses(input, target, weight, pos_weight), _word(reduction))


@declare(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
    "int reduction=0)",
    method=False,
    dispatched=True,
)
def _cosines(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int
) -> Tensor:
    """Return the loss of angles between rows that are alike, or are not; see `nn.functional`.

    The gradient is that of `cosine_similarity`, with the sign that the target gives.

    Parameters
    ----------
    reduction
        0 for none, as PyTorch has it here, 1 for the mean, 2 for the sum.

    >>> import numgrad as ng
    >>> x, y = ng.tensor([[1.0, 0.0]]), ng.tensor([[0.0, 1.0]])
    >>> ng.cosine_embedding_loss(x, y, ng.ones(1))
    tensor([1.])
    """
    result: Tensor = cosine_embedding_loss(
        input1, input2, target, margin, reduction=_word(reduction)
    )
    return result


@declare(
    "ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    "int blank=0, int reduction=0, bool zero_infinity=False)",
    "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
    "int blank=0, int reduction=0, bool zero_infinity=False)",
    method=False,
)
def _alignments(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Tensor:
    """Return the negative logarithm of the probability of labels; see `nn.functional`.

    The gradient is exp(log p) less the share that the paths with these labels have of a class.

    Parameters
    ----------
    reduction
        0 for none, as PyTorch has it here, 1 for the mean, 2 for the sum.

    >>> import numgrad as ng
    >>> ng.exp(-ng.ctc_loss(ng.full((2, 1, 2), 0.5).log(), ng.tensor([[1]]), (2,), (1,)))
    tensor([0.7500])
    """
    return losses_of(
        log_probs, targets, input_lengths, target_lengths, blank, _word(reduction), zero_infinity
    )


@declare(
    "hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, int reduction=0)",
    method=False,
    dispatched=True,
)
def _hinges(input: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    """Return x where the target is 1, margin - x, no less than 0, where it is -1.

    The gradient is 1, and -1 or 0, over the number of elements.

    Parameters
    ----------
    reduction
        0 for none, as PyTorch has it here, 1 for the mean, 2 for the sum.

    >>> import numgrad as ng
    >>> ng.hinge_embedding_loss(ng.tensor([2.0, 0.5]), ng.tensor([1.0, -1.0]))
    tensor([2.0000, 0.5000])
    """
    result: Tensor = hinge_embedding_loss(input, target, margin, reduction=_word(reduction))
    return result


@declare(
    "kl_div(Tensor input, Tensor target, int reduction=0, *, bool log_target=False)",
    method=False,
    dispatched=True,
)
def _divergence(input: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    """Return t (ln t - x), the divergence of exp(x) from t; see `nn.functional`.

    The gradient is -t, over the number of elements.

    Parameters
    ----------
    reduction
        0 for none, as PyTorch has it here, 1 for the mean, 2 for the sum.
    log_target
        Whether the target holds logarithms.

    >>> import numgrad as ng
    >>> logs, target = ng.tensor([[0.5, 0.5]]).log(), ng.tensor([[0.25, 0.75]])
    >>> ng.kl_div(logs, target, 2)
    tensor(0.1308)
    """
    return reduced(divergences(input, target, log_target), _word(reduction))


@declare(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, "
    "int reduction=0)",
    method=False,
    dispatched=True,
)
def _ranks(input1: Tensor, input2: Tensor, target: Tensor, margin: float, reduction: int) -> Tensor:
    """Return margin - t (x1 - x2), no less than 0; see `nn.functional`.

    The gradient for x1 is -t where the loss is not 0, over the number of elements.

    Parameters
    ----------
    reduction
        0 for none, as PyTorch has it here, 1 for the mean, 2 for the sum.

    >>> import numgrad as ng
    >>> ng.margin_ranking_loss(ng.tensor([1.0, 2.0]), ng.tensor([3.0, 0.0]), ng.ones(2))
    tensor([2., 0.])
    """
    result: Tensor = margin_ranking_loss(input1, input2, target, margin, reduction=_word(reduction))
    return result


@declare(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, "
    "int reduction)",
    method=False,
    dispatched=True,
)
def _counts(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """Return exp(x) - t x, the likelihood of counts whose mean is exp(x); see `nn.functional`.

    The gradient is exp(x) - t.

    Parameters
    ----------
    log_input
        If not, the mean is x, and the loss x - t ln(x + eps).
    full
        Whether to add Stirling's approximation of ln t!, where t is greater than 1.
    reduction
        0 for none, as PyTorch has it here, 1 for the mean, 2 for the sum.

    >>> import numgrad as ng
    >>> ng.poisson_nll_loss(ng.tensor([0.0]), ng.tensor([3.0]), True, False, 1e-8, 1)
    tensor(1.)
    """
    result: Tensor = poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_word(reduction)
    )
    return result


@declare(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, "
    "float p=2, float eps=1e-6, bool swap=False, int reduction=0)",
    method=False,
    dispatched=True,
)
def _triplets(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float,
    p: float,
    eps: float,
    swap: bool,
    reduction: int,
) -> Tensor:
    """Return how much closer to the anchor something is than something else; see `nn.functional`.

    The gradient is that of `pairwise_distance`.

    Parameters
    ----------
    reduction
        0 for none, as PyTorch has it here, 1 for the mean, 2 for the sum.

    >>> import numgrad as ng
    >>> zero, near, far = ng.zeros(1, 2), ng.tensor([[3.0, 4.0]]), ng.tensor([[0.0, 5.5]])
    >>> ng.triplet_margin_loss(zero, near, far)
    tensor([0.5000])
    """
    result: Tensor = triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_word(reduction)
    )
    return result
