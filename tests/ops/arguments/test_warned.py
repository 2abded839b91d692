"""Warnings point at the user's line, whatever it calls and however far inside they arise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import numgrad as ng
import numgrad.nn.functional as F

CALLS = {
    "upsample": lambda: F.upsample(ng.ones(1, 1, 2), 3),
    "upsample_nearest": lambda: F.upsample_nearest(ng.ones(1, 1, 2), 3),
    "upsample_bilinear": lambda: F.upsample_bilinear(ng.ones(1, 1, 2, 2), 3),
    "grid_sample": lambda: F.grid_sample(ng.ones(1, 1, 2, 2), ng.zeros(1, 1, 1, 2)),
    "affine_grid": lambda: F.affine_grid(ng.ones(1, 2, 3), (1, 1, 2, 2)),
    "softmax": lambda: F.softmax(ng.ones(2, 2)),
    "kl_div": lambda: F.kl_div(ng.zeros(2), ng.ones(2)),
    "l1_loss": lambda: F.l1_loss(ng.zeros(2), ng.ones(2), size_average=True),
    "mse_loss of other sizes": lambda: F.mse_loss(ng.zeros(2), ng.ones(1, 2)),
    "dropout2d": lambda: F.dropout2d(ng.ones(1, 2)),
    "range": lambda: ng.range(0, 2),
    "resize": lambda: ng.ones(2).resize(2),
    "cov": lambda: ng.cov(ng.ones(2, 1)),
    "var": lambda: ng.var(ng.ones(1)),
    "std along a dim": lambda: ng.ones(1, 2).std(0),
    "std_mean": lambda: ng.std_mean(ng.ones(1)),
    "T of many dims": lambda: ng.ones(2, 2, 2).T,
    "where of bytes": lambda: ng.where(ng.ones(2).byte(), 1.0, 2.0),
    "mask of bytes": lambda: ng.ones(2)[ng.ones(2).byte()],
    "real of complex": lambda: (ng.ones(2) + 1j).to(ng.float32),
    "sum of complex": lambda: (ng.ones(2) + 1j).sum(dtype=ng.float32),
    "tensor of a tensor": lambda: ng.tensor(ng.ones(2)),
    "new_tensor of a tensor": lambda: ng.ones(2).new_tensor(ng.ones(2)),
    "array that is not writable": lambda: ng.from_numpy(np.broadcast_to(np.ones(1), 2)),
    "out of another size": lambda: ng.add(ng.ones(2), 1, out=ng.ones(3)),
    "number that requires grad": lambda: float(ng.ones(1, requires_grad=True).sum()),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_is_at_the_users_line(name):
    for _ in range(4):  # on the long way, and when calls are remembered
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            CALLS[name]()
        assert [each.filename for each in given] == [__file__] * len(given)
        assert given
