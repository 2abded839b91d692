"""Functions of torch itself beside those of nn.functional: their arguments, order and defaults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from tests.ops.nn.calls import agree

LINES = """
torch.layer_norm(x, (4, 5), None, None, 1e-5, True)
torch.layer_norm(x, 5)
torch.native_layer_norm(x, (5,), None, None, 1e-5)[0]
torch.native_layer_norm(x, (4, 5), None, None, 1e-5)[1]
torch.native_layer_norm(x, (5,), None, None, 1e-5)[2].detach()
torch.rms_norm(x, (5,), None, 0.1)
torch.group_norm(x, 2, c, c, 1e-5, True)
torch.group_norm(x[:1, :1, :1], 1)
torch.group_norm(x, 3)
torch.group_norm(x[:0].detach(), 2)
torch.native_group_norm(x, c, None, 2, 4, 5, 2, 1e-5)[0]
torch.native_group_norm(x, None, None, 2, 4, 5, 2, 1e-5)[1].detach()
torch.native_group_norm(x, None, None, 2, 4, 5, 2, 1e-5)[2].detach()
torch.batch_norm(x, c, c, None, None, True, 0.1, 1e-5, True)
torch.batch_norm(x, c, c, _c, _s, False, 0.1, 1e-5, True)
torch.batch_norm(x, c, c, _c, _s, True, 0.1, 1e-5, True).detach() * 0 + _c[0] + _s[1]
torch.batch_norm(x, c, c, None, None, False, 0.1, 1e-5, True)
torch.native_batch_norm(x, c, None, None, None, True, 0.1, 1e-5)[0]
torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[1]
torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[2].detach()
torch.native_batch_norm(x, None, None, _c, _s, False, 0.1, 1e-5)[2].detach()
torch.batch_norm(x[0, 0, :0], None, None, _c[:0], _s[:0], False, 0.1, 1e-5, True).detach().sum()
torch.instance_norm(x, c, c, None, None, True, 0.1, 1e-5, True)
torch.instance_norm(x, c, c, None, None, False, 0.1, 1e-5, True)
torch.native_dropout(x, 0.5, False)[0]
torch.native_dropout(x, 1.0, None)[0]
torch.native_dropout(x, 1.0, True)[1]
torch.norm_except_dim(x)
torch.norm_except_dim(x, 2, 1)
torch.norm_except_dim(x, 2, -1)
torch.norm_except_dim(x, 1, 2)
torch.norm_except_dim(x, 2, 5)
torch.dropout(x, 0.5, False)
torch.dropout(x, 1.0, True)
torch.dropout(x, 1.5, True)
torch.dropout(x, 0.5)
torch.dropout_(x * 1, 1.0, True)
torch.dropout_(x, 1.0, True)
torch.feature_dropout(x, 1.0, True)
torch.feature_dropout_(x * 1, 1.0, True)
torch.feature_dropout(x[0, 0], 0.5, True)
torch.alpha_dropout(x, 1.0, True)
torch.alpha_dropout_(x * 1, 1.0, True)
torch.feature_alpha_dropout(x, 1.0, True)
torch.feature_alpha_dropout_(x * 1, 1.0, False)
torch.bilinear(x, x, w)
torch.kl_div(y, _p)
torch.kl_div(y, _p, 1)
torch.kl_div(y, _p, 2, log_target=True)
torch.kl_div(y, _p, 3)
torch.poisson_nll_loss(y, _p, True, False, 1e-8, 1)
torch.poisson_nll_loss(y, _p, False, True, 1.5, 0)
torch.poisson_nll_loss(y, _p)
torch.binary_cross_entropy_with_logits(y, _p)
torch.binary_cross_entropy_with_logits(y, _p, _p, _p[0], 2)
torch.binary_cross_entropy_with_logits(y[:, :1].detach(), _p, reduction=1)
torch.cosine_embedding_loss(y, z, _o)
torch.cosine_embedding_loss(y, z, _o, 0.1, 1)
torch.margin_ranking_loss(y, z, _p)
torch.margin_ranking_loss(y, z, _p, 0.5, 1)
torch.triplet_margin_loss(y, z, y * z)
torch.triplet_margin_loss(y, z, y * z, 0.5, 1.5, 1e-3, True, 2)
torch.triplet_margin_loss(y, z[0], y)
torch.hinge_embedding_loss(y, _o[:, None])
torch.hinge_embedding_loss(y, _o[:, None], 0.5, 1)
torch.conv_tbc(x, w.transpose(1, 2)[:3], d, 1)
torch.conv_tbc(x, k, d, 1)
torch.conv_tbc(x, k, d)
torch.conv_tbc(x, k[:, :4], d)
torch.conv_tbc(x[0], k, d)
torch.conv_tbc(x, k[0], d)
torch.conv_tbc(x, k, c)
torch.conv_tbc(x, k, d[None])
torch.affine_grid_generator(w[:2, :2, :3], (2, 1, 3, 4), False)
torch.affine_grid_generator(w[:2, :2, :3], (2, 1, 3), False)
torch.grid_sampler(x[None], g, 0, 0, False)
torch.grid_sampler(x[None], g, 1, 1, True)
torch.grid_sampler_2d(x[None], g, 2, 2, False)
torch.grid_sampler_3d(x[None, None], v, 0, 1, False)
torch.grid_sampler_2d(x[None, None], v, 0, 1, False)
torch.grid_sampler_3d(x[None], g, 0, 1, False)
torch.grid_sampler_3d(x[None, None], v, 2, 1, False)
torch.native_channel_shuffle(x.detach(), 2)
""".strip().splitlines()


def operands(seed: int, dtype: str = "float64") -> dict[str, Any]:
    random = np.random.default_rng(seed)
    shapes = {
        **{"x": (2, 4, 5), "c": (4,), "_c": (4,), "w": (6, 5, 5), "y": (3, 4), "z": (3, 4)},
        **{"k": (2, 5, 3), "d": (3,), "g": (1, 2, 3, 2), "v": (1, 2, 1, 2, 3)},
    }
    found = {name: random.normal(size=shape).astype(dtype) for name, shape in shapes.items()}
    found["_s"] = random.uniform(0.5, 2, size=4).astype(dtype)
    found["_p"] = random.uniform(0.1, 0.9, size=(3, 4)).astype(dtype)
    return {**found, "_o": np.array([1.0, -1.0, 1.0], dtype)}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_gradients_and_refusals_are_pytorchs(torch, dtype):
    for line in LINES:
        agree(torch, line, operands(0, dtype), 1e-10)


def test_dropout_keeps_about_as_many_and_scales_them():
    ng.manual_seed(0)
    x = ng.ones(1000, 4)
    for name in ("dropout", "dropout_", "feature_dropout", "feature_dropout_"):
        found = getattr(ng, name)(x.clone(), 0.25, True)
        assert {*found.unique().tolist()} == {0.0, 1 / 0.75} or len(found.unique()) == 2
        assert 0.2 < (found == 0).double().mean() < 0.3
    found, kept = ng.native_dropout(x, 0.25, True)
    assert ((found != 0) == kept).all() and 0.7 < kept.double().mean() < 0.8
