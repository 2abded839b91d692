"""Losses as functions of torch itself, where a number says how they are reduced.

``torch.kl_div`` and its like take 0, 1 or 2 for what `nn.functional` calls none, mean and sum. The
default is 0, whatever PyTorch's stubs say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numgrad.graph.tensor import Tensor
from numgrad.ops.nn.losses.alignments import ctc_loss
from numgrad.ops.nn.losses.margins import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    triplet_margin_loss,
)
from numgrad.ops.nn.losses.probabilities import (
    binary_cross_entropy_with_logits,
    divergences,
    kl_div,
    logit_losses,
)
from numgrad.ops.nn.losses.reduced import reduced
from numgrad.ops.nn.losses.regression import poisson_nll_loss
from numgrad.ops.nn.twice import declare_again, rule_of

__all__: list[str] = []

_REDUCTIONS = ("none", "mean", "sum")
_SAID = "0 for none, as PyTorch has it here, 1 for the mean, 2 for the sum."


def _word(reduction: int) -> str:
    """Return what a number stands for; any other leaves the elements as they are."""
    return _REDUCTIONS[reduction] if 0 <= reduction < 3 else "none"


def _rule(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule of one of nn.functional, with a number in the place of a word."""
    rule = rule_of(function)
    names = rule.__code__.co_varnames
    at = names.index("reduction")

    @functools.wraps(rule)
    def loss(*arguments: Any) -> Any:
        return rule(*arguments[:at], _word(arguments[at]), *arguments[at + 1 :])

    return loss


def _logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    reduction: int,
) -> Tensor:
    return reduced(logit_losses(input, target, weight, pos_weight), _word(reduction))


def _divergence(input: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    return reduced(divergences(input, target, log_target), _word(reduction))


def _declare(
    function: Callable[..., Any],
    *parameters: str,
    example: str,
    rule: Callable[..., Any] | None = None,
    dispatched: bool = True,
) -> None:
    """Declare a loss by the parameters that it takes, and lines that show it."""
    text = (rule_of(function).__doc__ or "").replace("Return the mean of ", "Return ")
    start = max(text.find("    Parameters\n    ----------\n"), 0)
    end = text.find("\n\n", start) if text else 0  # Python leaves docstrings out when told to
    declare_again(
        function,
        *[f"{function.__name__}({each})" for each in parameters],
        rule=rule or _rule(function),
        example=example,
        dispatched=dispatched,
        docstring=f"{text[:end]}\n    reduction\n        {_SAID}{text[end:]}",
    )


_declare(
    binary_cross_entropy_with_logits,
    "Tensor input, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=0",
    rule=_logits,
    example="""
    >>> ng.binary_cross_entropy_with_logits(ng.tensor([0.0, 800.0]), ng.ones(2), reduction=1)
    tensor(0.3466)""",
)
_declare(
    cosine_embedding_loss,
    "Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0",
    example="""
    >>> x, y = ng.tensor([[1.0, 0.0]]), ng.tensor([[0.0, 1.0]])
    >>> ng.cosine_embedding_loss(x, y, ng.ones(1))
    tensor([1.])""",
)
_BLANKS = "int blank=0, int reduction=0, bool zero_infinity=False"
_declare(
    ctc_loss,
    f"Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, {_BLANKS}",
    f"Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, {_BLANKS}",
    dispatched=False,
    example="""
    >>> ng.exp(-ng.ctc_loss(ng.full((2, 1, 2), 0.5).log(), ng.tensor([[1]]), (2,), (1,)))
    tensor([0.7500])""",
)
_declare(
    hinge_embedding_loss,
    "Tensor input, Tensor target, float margin=1.0, int reduction=0",
    example="""
    >>> ng.hinge_embedding_loss(ng.tensor([2.0, 0.5]), ng.tensor([1.0, -1.0]))
    tensor([2.0000, 0.5000])""",
)
_declare(
    kl_div,
    "Tensor input, Tensor target, int reduction=0, *, bool log_target=False",
    rule=_divergence,
    example="""
    >>> logs, target = ng.tensor([[0.5, 0.5]]).log(), ng.tensor([[0.25, 0.75]])
    >>> ng.kl_div(logs, target, 2)
    tensor(0.1308)""",
)
_declare(
    margin_ranking_loss,
    "Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0",
    example="""
    >>> ng.margin_ranking_loss(ng.tensor([1.0, 2.0]), ng.tensor([3.0, 0.0]), ng.ones(2))
    tensor([2., 0.])""",
)
_declare(
    poisson_nll_loss,
    "Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction",
    example="""
    >>> ng.poisson_nll_loss(ng.tensor([0.0]), ng.tensor([3.0]), True, False, 1e-8, 1)
    tensor(1.)""",
)
_declare(
    triplet_margin_loss,
    "Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, "
    "float eps=1e-6, bool swap=False, int reduction=0",
    example="""
    >>> zero, near, far = ng.zeros(1, 2), ng.tensor([[3.0, 4.0]]), ng.tensor([[0.0, 5.5]])
    >>> ng.triplet_margin_loss(zero, near, far)
    tensor([0.5000])""",
)
