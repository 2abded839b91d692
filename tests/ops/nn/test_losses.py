"""Losses and distances of nn.functional beside PyTorch's, at extremes, and in traced functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.nn import functional as F
from tests.ops.nn.calls import agree

# PyTorch has no gradient for weights, `_w` and `_p` here. Each is run as it stands, and with
# every reduction where it has a closing `)` behind a blank.
LINES = """
F.mse_loss(x, y )
F.mse_loss(x, y[0] )
F.mse_loss(x, y, weight=p )
F.mse_loss(x, y, weight=p[0] )
F.mse_loss(x, y, size_average=False)
F.mse_loss(x, y, reduce=False)
F.mse_loss(x, y, True, True)
F.mse_loss(x, y, reduction='a')
F.mse_loss(x, y, reduction='elementwise_mean')
F.mse_loss(x, y[:, :2])
F.l1_loss(x, y )
F.l1_loss(x, x )
F.l1_loss(x, y, weight=p )
F.smooth_l1_loss(x, y )
F.smooth_l1_loss(x, y, beta=0.3 )
F.smooth_l1_loss(x, y, beta=0 )
F.smooth_l1_loss(x, y, beta=-1.0)
F.smooth_l1_loss(x, x + 1 )
F.huber_loss(x, y )
F.huber_loss(x, y, delta=0.3 )
F.huber_loss(x, y, delta=0.0)
F.huber_loss(x, y, delta=2.0, weight=p )
F.huber_loss(x, x + 1 )
F.gaussian_nll_loss(x, y, p )
F.gaussian_nll_loss(x, y, p[:, :1], full=True )
F.gaussian_nll_loss(x, y, p[:, 0], eps=1.0 )
F.gaussian_nll_loss(x, y, 0.5 )
F.gaussian_nll_loss(x, y, -p)
F.gaussian_nll_loss(x, y, p[0])
F.gaussian_nll_loss(x, y, p, reduction='a')
F.poisson_nll_loss(x, k )
F.poisson_nll_loss(p, k, log_input=False )
F.poisson_nll_loss(x, y.exp(), full=True )
F.poisson_nll_loss(x, k, reduction='a')
F.nll_loss(x, c )
F.nll_loss(x, c, _w )
F.nll_loss(x, c, _w, ignore_index=1 )
F.nll_loss(x, c.to(torch.uint8) )
F.nll_loss(x[0], c[0] )
F.nll_loss(x[0], c)
F.nll_loss(z, c[:, None].expand(5, 3) )
F.nll_loss(z[..., None], c[:, None, None].expand(5, 3, 1), _w )
F.nll_loss(z[..., None], c[:, None].expand(5, 3))
F.nll_loss(z[..., None], c[:, None, None].expand(5, 2, 1))
F.nll_loss(z, c[:, None].expand(5, 2))
F.nll_loss(x, c + 3)
F.nll_loss(x, c - 3)
F.nll_loss(x, c * 0 - 100)
F.nll_loss(x, c * 0 - 100, reduction='sum')
F.nll_loss(x, c.int())
F.nll_loss(x, c[:3])
F.nll_loss(x, c[:, None])
F.nll_loss(x, c, _w[:2])
F.nll_loss(x, c, _w.float())
F.nll_loss(x[0, 0], c)
F.nll_loss(x[:0], c[:0])
F.cross_entropy(x, c )
F.cross_entropy(x, c, _w )
F.cross_entropy(x, c, _w, ignore_index=2 )
F.cross_entropy(x, c, label_smoothing=0.2 )
F.cross_entropy(x, c, _w, label_smoothing=0.2 )
F.cross_entropy(x, c, _w, ignore_index=0, label_smoothing=0.2 )
F.cross_entropy(x, c, ignore_index=0, label_smoothing=0.2 )
F.cross_entropy(x[0], c[0], label_smoothing=0.2 )
F.cross_entropy(z, c[:, None].expand(5, 3), _w, label_smoothing=0.1 )
F.cross_entropy(x, y.softmax(1) )
F.cross_entropy(x, y.softmax(1), _w )
F.cross_entropy(x, y.softmax(1), _w, label_smoothing=0.3 )
F.cross_entropy(x[0], y[0].softmax(0) )
F.cross_entropy(z, z.softmax(1), _w )
F.cross_entropy(x, y.softmax(1), ignore_index=1)
F.cross_entropy(x, k)
F.cross_entropy(x, c, label_smoothing=2.0)
F.cross_entropy(x, y.softmax(1), _w[:2])
F.cross_entropy(x, c + 2)
F.cross_entropy(x, c, reduction='a')
F.cross_entropy(x, c, size_average=False)
F.linear_cross_entropy(x, v, c )
F.linear_cross_entropy(x, v, c, linear_bias=v[:, 0], weight=_w )
F.linear_cross_entropy(x, v, c, ignore_index=1, label_smoothing=0.2 )
F.linear_cross_entropy(x[0], v, c[0] )
F.linear_cross_entropy(x[0], v, y[0].softmax(0) )
F.linear_cross_entropy(x, v, y.softmax(1) )
F.linear_cross_entropy(x, v, y.softmax(1), ignore_index=1)
F.linear_cross_entropy(x, z[:3], c[:, None].expand(5, 3) )
F.linear_cross_entropy(x, z[:3], c[:, None].expand(5, 3), linear_bias=v )
F.linear_cross_entropy(x[0], z[:3], c[0])
F.linear_cross_entropy(x, v, c, linear_bias=v)
F.linear_cross_entropy(x, v[:, :2], c)
F.linear_cross_entropy(x, v[0], c)
F.linear_cross_entropy(z, v, c)
F.linear_cross_entropy(x, v, c + 2)
F.binary_cross_entropy(h, q )
F.binary_cross_entropy(h, q, _p )
F.binary_cross_entropy(h, q, _w[:1] )
F.binary_cross_entropy(h.round(), q )
F.binary_cross_entropy(h, q.round() )
F.binary_cross_entropy(x.sigmoid(), q )
F.binary_cross_entropy(x * 9, q)
F.binary_cross_entropy(h, q * 2)
F.binary_cross_entropy(h, q[0])
F.binary_cross_entropy(h, q.float())
F.binary_cross_entropy_with_logits(x, q )
F.binary_cross_entropy_with_logits(x, q, _p )
F.binary_cross_entropy_with_logits(x, q, pos_weight=_p[0] )
F.binary_cross_entropy_with_logits(x, q[0])
F.kl_div(x, h )
F.kl_div(x, y, log_target=True )
F.kl_div(x, h, reduction='batchmean')
F.kl_div(x[0, 0], h[0, 0], reduction='batchmean')
F.kl_div(x, h, size_average=False)
F.kl_div(x, h.round(), reduction='sum')
F.hinge_embedding_loss(x, s )
F.hinge_embedding_loss(x, s, margin=0.2 )
F.margin_ranking_loss(x, y, s )
F.margin_ranking_loss(x, y, s, margin=0.5 )
F.margin_ranking_loss(x, y, s[0])
F.soft_margin_loss(x, s )
F.multi_margin_loss(x, c )
F.multi_margin_loss(x, c, p=2, margin=0.5 )
F.multi_margin_loss(x, c, weight=_w )
F.multi_margin_loss(x[0], c[0] )
F.multi_margin_loss(x[0], c[:1] )
F.multi_margin_loss(x, c, p=3)
F.multi_margin_loss(x, c + 2)
F.multi_margin_loss(x, c[:2])
F.multi_margin_loss(x, c, weight=_w[:2])
F.multi_margin_loss(z, c)
F.multilabel_margin_loss(x, l )
F.multilabel_margin_loss(x[0], l[0] )
F.multilabel_margin_loss(x, l + 2)
F.multilabel_margin_loss(x, l[0])
F.multilabel_soft_margin_loss(x, q )
F.multilabel_soft_margin_loss(x, q, _w )
F.multilabel_soft_margin_loss(x, q, reduction='a')
F.triplet_margin_loss(x, y, p )
F.triplet_margin_loss(x, y, p, 2.0, 1.0, 1e-3, True )
F.triplet_margin_loss(x, y[0], p)
F.triplet_margin_loss(x, y, p, margin=-1.0)
F.triplet_margin_with_distance_loss(x, y, p )
F.triplet_margin_with_distance_loss(x, y, p, swap=True )
F.triplet_margin_with_distance_loss(x, y, p, distance_function=lambda a, b: (a - b).abs().sum(1) )
F.triplet_margin_with_distance_loss(x, y, p, reduction='a')
F.cosine_embedding_loss(x, y, s[:, 0] )
F.cosine_embedding_loss(x[0], y[0], s[0, 0], 0.1 )
F.cosine_embedding_loss(x, y, s)
F.cosine_embedding_loss(x, y, s[0, 0])
F.cosine_similarity(x, y)
F.cosine_similarity(x, y, 0)
F.cosine_similarity(x, y[0], dim=-1)
F.cosine_similarity(x * 0, y)
F.cosine_similarity(x, y, eps=5.0)
F.cosine_similarity(k, k)
torch.cosine_similarity(x, y)
F.pairwise_distance(x, y)
F.pairwise_distance(x, x)
F.pairwise_distance(x, y, 1.0, keepdim=True)
F.pairwise_distance(x, y[0], p=3)
torch.pairwise_distance(x[0], y[0])
F.normalize(x)
F.normalize(x, dim=0)
F.normalize(x, 1.0, -1)
F.normalize(x * 0)
F.normalize(x, eps=3.0)
F.normalize(x.detach(), out=torch.empty(0, dtype=x.dtype))
""".strip().splitlines()
REDUCTIONS = ("", ", reduction='none')", ", reduction='sum')", ", reduction='mean')")


def operands(seed: int, dtype: str = "float64") -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "x": random.normal(size=(5, 3)).astype(dtype),
        "y": random.normal(size=(5, 3)).astype(dtype),
        "z": random.normal(size=(5, 3, 3)).astype(dtype),
        "v": random.normal(size=(3, 3)).astype(dtype),
        "p": random.uniform(0.1, 2, size=(5, 3)).astype(dtype),
        "_p": random.uniform(0.1, 2, size=(5, 3)).astype(dtype),
        "h": random.uniform(0.05, 0.95, size=(5, 3)).astype(dtype),
        "q": random.uniform(size=(5, 3)).astype(dtype),
        "s": random.choice([-1, 1], size=(5, 3)),
        "_w": random.uniform(0.1, 2, size=(3,)).astype(dtype),
        "c": random.integers(0, 3, size=5),
        "k": random.integers(0, 4, size=(5, 3)),
        "l": random.integers(-1, 3, size=(5, 3)),
    }


def lines() -> list[str]:
    found = []
    for line in LINES:
        if line.endswith(" )"):
            found += [line[:-2] + (ending or ")") for ending in REDUCTIONS]
        else:
            found.append(line)
    return found


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_gradients_warnings_and_refusals_are_pytorchs(torch, dtype):
    for line in lines():
        agree(torch, line, operands(0, dtype))


def test_losses_are_finite_where_probabilities_are_0_and_1():
    x = ng.tensor([-1e4, 1e4, 0.0], dtype=ng.float64, requires_grad=True)
    for target in (ng.zeros(3), ng.ones(3)):
        loss = F.binary_cross_entropy_with_logits(x, target.double(), reduction="none")
        np.testing.assert_allclose(
            loss.detach().numpy(), np.logaddexp(0, x.detach().numpy() * (1 - 2 * target.numpy()))
        )
    certain = ng.tensor([0.0, 1.0], requires_grad=True)
    loss = F.binary_cross_entropy(certain, ng.tensor([1.0, 0.0]), reduction="none")
    assert loss.tolist() == [100, 100]
    loss.sum().backward()
    assert certain.grad.isfinite().all()
    assert F.soft_margin_loss(ng.tensor([800.0]), ng.tensor([-1.0])).item() == 800


def test_cross_entropy_is_the_likelihood_of_classes():
    random = np.random.default_rng(3)
    x, c = random.normal(size=(6, 4)), random.integers(0, 4, size=6)
    exact = np.log(np.exp(x).sum(1)) - x[np.arange(6), c]
    found = F.cross_entropy(ng.tensor(x), ng.tensor(c), reduction="none")
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-13)
    one_hot = ng.tensor(np.eye(4)[c])
    assert ng.allclose(F.cross_entropy(ng.tensor(x), one_hot, reduction="none"), found)


@pytest.mark.usefixtures("traced")
def test_a_class_without_dims_is_known_to_compiled_functions_and_batches():
    random = np.random.default_rng(3)
    x, target = ng.tensor(random.normal(size=(3, 4))), ng.tensor(2)

    def loss(x: Any, target: Any = target) -> Any:
        return F.cross_entropy(x, target) ** 2

    slope = ng.func.grad(loss)
    expected = [slope(row) for row in x]
    for given, row in zip(expected, x, strict=True):
        for compiled in (ng.jit(slope), ng.jit(lambda row: slope(row, ng.tensor(2)))):
            np.testing.assert_allclose(compiled(row).numpy(), given.numpy(), rtol=1e-12)
    found = ng.func.vmap(slope)(x, ng.tensor([2, 2, 2]))
    np.testing.assert_allclose(found.numpy(), ng.stack(expected).numpy(), rtol=1e-12)


DIFFERENTIABLE = [
    line
    for line in lines()
    if "reduction='sum'" in line and line[:5] != "F.l1_" and "round" not in line
]


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_second_derivatives_are_those_of_finite_differences():
    for line in DIFFERENTIABLE:
        given = operands(1)
        names = {name: ng.tensor(value) for name, value in given.items()}

        def loss(x: Any, line: str = line, names: Any = names) -> Any:
            return eval(line, {"torch": ng, "F": F, **names, "x": x})

        if (
            " x" not in line.replace("(", " ")
            or "x * " in line
            or "p[0]," in line
            or "p[0] )" in line
        ):
            continue
        x = names["x"].requires_grad_()
        assert ng.autograd.gradcheck(loss, (x,), fast_mode=True), line
        if "hinge" not in line and loss(x).requires_grad:
            assert ng.autograd.gradgradcheck(loss, (x,), fast_mode=True), line


@pytest.mark.parametrize("limit", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_derivatives_of_shortened_squares_at_0_at_the_bound_and_at_infinity(limit, dtype):
    bound = getattr(ng, dtype)
    numbers = [0.0, -0.0, limit / 2, -limit / 2, limit, -limit, 3.0, -3.0, np.inf, -np.inf]
    for loss, scale in ((F.huber_loss, 1.0), (F.smooth_l1_loss, limit)):
        x = ng.tensor(numbers, dtype=bound, requires_grad=True)
        y = (
            loss(x, ng.zeros_like(x), "none", limit)
            if loss is F.huber_loss
            else loss(x, ng.zeros_like(x), reduction="none", beta=limit)
        )
        (slope,) = ng.autograd.grad(y.sum(), x, create_graph=True)
        (bend,) = ng.autograd.grad(slope.sum(), x)
        size = np.abs(x.detach().numpy())
        edge = size.dtype.type(limit)
        square = np.minimum(size, edge)
        tolerance = 4 * np.finfo(size.dtype).eps
        np.testing.assert_allclose(
            y.detach().numpy(), square * (size - square / 2) / scale, rtol=tolerance
        )
        np.testing.assert_allclose(
            slope.detach().numpy(), np.clip(numbers, -limit, limit) / scale, rtol=tolerance
        )
        np.testing.assert_allclose(bend.numpy(), (size < edge) / scale, rtol=tolerance)


@pytest.mark.usefixtures("traced")
def test_traced_losses_are_the_eager_ones():
    for line in [
        "F.mse_loss(x, y)",
        "F.huber_loss(x, y, delta=0.4)",
        "F.cross_entropy(x, c, _w, label_smoothing=0.1)",
        "F.nll_loss(x, c)",
        "F.binary_cross_entropy(x.sigmoid(), q)",
        "F.kl_div(x, h, reduction='batchmean')",
        "F.multi_margin_loss(x, c)",
        "F.multilabel_margin_loss(x, l)",
        "F.gaussian_nll_loss(x, y, p)",
        "F.triplet_margin_loss(x, y, p)",
    ]:
        names = {name: ng.tensor(value) for name, value in operands(2).items()}
        f = eval(f"lambda {', '.join(names)}: {line}", {"F": F})
        np.testing.assert_allclose(ng.jit(f)(**names).numpy(), f(**names).numpy(), rtol=1e-13)
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        ng.jit(lambda x, c: F.nll_loss(x, c))(ng.ones(2, 3), ng.tensor([0, 7]))


OLD_WORDS = ["l1_loss", "mse_loss", "smooth_l1_loss", "poisson_nll_loss"]
OLD_WORDS += ["binary_cross_entropy", "binary_cross_entropy_with_logits", "soft_margin_loss"]
OLD_WORDS += ["hinge_embedding_loss", "multilabel_soft_margin_loss"]


@pytest.mark.filterwarnings("ignore:size_average and reduce args:UserWarning")
@pytest.mark.parametrize("size_average", [None, False, True])
@pytest.mark.parametrize("reduce", [None, False, True])
@pytest.mark.parametrize("name", OLD_WORDS)
def test_the_old_words_for_what_is_reduced_go_before_the_new_one(
    name: str, size_average: bool | None, reduce: bool | None
) -> None:
    loss = getattr(ng.nn.functional, name)
    x = ng.tensor([[0.25, 0.5, 0.75], [0.5, 0.125, 0.25]], dtype=ng.float64)
    target = ng.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], dtype=ng.float64)
    for reduction in ("mean", "sum", "none"):
        found = loss(x, target, size_average=size_average, reduce=reduce, reduction=reduction)
        wanted = reduction
        if size_average is not None or reduce is not None:
            wanted = "none" if reduce is False else "sum" if size_average is False else "mean"
        assert found.tolist() == loss(x, target, reduction=wanted).tolist()
