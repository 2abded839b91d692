"""multinomial, poisson, binomial: their distributions, what they refuse, under jit and vmap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import numgrad as ng

WEIGHTS = [0.5, 0.0, 1.5, 2.0, 1.0]


def counts_of(found: Any, bins: int) -> Any:
    return np.bincount(found.flatten().numpy().astype(np.int64), minlength=bins)


def assert_drawn(counts: Any, chances: Any) -> None:
    """Fail if counts of this kind are met once in ten thousand runs, with any seed."""
    chances = np.asarray(chances)
    assert counts[chances == 0].sum() == 0
    likely = chances > 0
    expected = chances[likely] / chances.sum() * counts.sum()
    assert stats.chisquare(counts[likely], expected).pvalue > 1e-4


@pytest.mark.parametrize("dtype", [ng.float64, ng.float32, ng.float16])
def test_categories_are_drawn_by_their_weights(dtype: Any) -> None:
    ng.manual_seed(1)
    weights = ng.tensor([WEIGHTS, WEIGHTS[::-1]], dtype=dtype)
    found = ng.multinomial(weights, 20_000, replacement=True)
    assert found.dtype is ng.int64 and found.shape == (2, 20_000)
    for row, chances in zip(found, (WEIGHTS, WEIGHTS[::-1]), strict=True):
        assert_drawn(counts_of(row, 5), chances)


def test_without_replacement_pairs_come_with_their_chances() -> None:
    ng.manual_seed(2)
    pairs = ng.multinomial(ng.tensor(WEIGHTS).expand(20_000, 5), 2)
    found = counts_of(pairs[:, 0] * 5 + pairs[:, 1], 25)
    share = np.array(WEIGHTS) / sum(WEIGHTS)
    chances = share[:, None] * share / (1 - share[:, None]) * (1 - np.eye(5))
    assert_drawn(found, chances.ravel())


def test_all_categories_are_drawn_once_and_those_without_weight_last() -> None:
    ng.manual_seed(3)
    for _ in range(50):
        order = ng.multinomial(ng.tensor(WEIGHTS), 5).tolist()
        assert sorted(order) == [0, 1, 2, 3, 4] and order[-1] == 1


@pytest.mark.parametrize("rate", [0.3, 4.0, 50.0])
def test_counts_of_events_have_their_distribution(rate: float) -> None:
    ng.manual_seed(4)
    found = ng.poisson(ng.full((20_000,), rate, dtype=ng.float32))
    assert found.dtype is ng.float32
    low, high = stats.poisson.ppf([0.001, 0.999], rate)
    clipped = found.clamp(low, high).long() - int(low)
    chances = stats.poisson.pmf(np.arange(low, high + 1), rate)
    chances[0], chances[-1] = stats.poisson.cdf(low, rate), stats.poisson.sf(high - 1, rate)
    assert_drawn(counts_of(clipped, len(chances)), chances)


def test_counts_of_trials_have_their_distribution() -> None:
    ng.manual_seed(5)
    found = ng.binomial(ng.full((20_000,), 6.0), ng.tensor(0.3))
    assert_drawn(counts_of(found, 7), stats.binom.pmf(np.arange(7), 6, 0.3))
    edges = ng.binomial(ng.tensor([5.0, 5, -5, 5, 5]), ng.tensor([0.0, 1.5, 0.5, -1, float("nan")]))
    assert edges[:4].tolist() == [0, 5, 0, 0] and edges[4].isnan()


DRAWS = {
    "one category": lambda p: ng.multinomial(p, 1),
    "some": lambda p: ng.multinomial(p, 3),
    "with replacement": lambda p: ng.multinomial(p, 7, True),
    "poisson": lambda p: ng.poisson(p * 20),
    "binomial": lambda p: ng.binomial((p * 100).floor(), p / 3),
}


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", DRAWS)
def test_compiled_functions_draw_what_eager_ones_do(name: str) -> None:
    weights = ng.tensor([WEIGHTS, WEIGHTS[::-1]])
    jitted, seen = ng.jit(DRAWS[name]), []
    for function in (DRAWS[name], jitted):
        ng.manual_seed(6)
        seen.append([function(weights).tolist() for _ in range(3)] + [ng.rand(1).item()])
    assert seen[0] == seen[1]
    assert seen[0][0] != seen[0][1]


@pytest.mark.parametrize("name", DRAWS)
def test_every_example_of_a_batch_has_numbers_of_its_own(name: str) -> None:
    ng.manual_seed(7)
    batch = ng.tensor([WEIGHTS]).expand(40, 5)
    found = ng.vmap(DRAWS[name], randomness="different")(batch)
    assert found.shape == (40, *DRAWS[name](batch[0]).shape)
    assert (found != found[:1]).any()


def test_rates_have_a_gradient_of_zero_as_in_pytorch(torch: Any) -> None:
    for library in (ng, torch):
        rate = library.ones(3).requires_grad_()
        counts = library.poisson(rate)
        assert counts.grad_fn.name() == "PoissonBackward0"
        counts.sum().backward()
        assert rate.grad.tolist() == [0, 0, 0]
        assert not library.multinomial(rate, 1).requires_grad


REFUSED = [
    "torch.multinomial(p, 5)",
    "torch.multinomial(p[None, None], 2)",
    "torch.multinomial(-p, 1)",
    "torch.multinomial(p * 0, 1)",
    "torch.multinomial(p, 0)",
    "torch.multinomial(p.long(), 1)",
    "torch.multinomial(p / 0, 1, True)",
    "torch.multinomial(torch.ones(2, 0), 1)",
    "torch.multinomial(p, 1.5)",
    "torch.poisson(-p)",
    "torch.poisson(p.long())",
    "torch.poisson(p * float('nan'))",
    "torch.poisson(p * 1j)",
    "torch.binomial(p.long(), p)",
    "torch.binomial(p, p.long())",
    "torch.binomial(p, p.double())",
    "torch.binomial(p, torch.ones(2))",
]


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_refused_is_refused_in_pytorchs_words(torch: Any, line: str) -> None:
    said = []
    for library in (torch, ng):
        with pytest.raises(Exception) as raised:
            eval(line, {"torch": library, "p": library.tensor([0.2, 0.3, 0.5])})
        said.append((type(raised.value), str(raised.value).partition("\n")[0]))
    assert said[0] == said[1]


def test_results_are_written_to_what_is_given() -> None:
    out = ng.empty(0, dtype=ng.int64)
    assert ng.multinomial(ng.tensor([0.0, 1.0]), 3, True, out=out) is out
    assert out.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="multinomial expects Long tensor out, got: Float"):
        ng.multinomial(ng.tensor([0.0, 1.0]), 3, True, out=ng.empty(3))


@pytest.mark.usefixtures("traced")
def test_compiled_functions_refuse_weights_that_are_none() -> None:
    jitted = ng.jit(lambda p: ng.multinomial(p, 1))
    assert jitted(ng.ones(3)).shape == (1,)
    with pytest.raises(RuntimeError, match="element < 0"):
        jitted(-ng.ones(3))
    with pytest.raises(RuntimeError, match="sum of probabilities"):
        jitted(ng.zeros(3))
