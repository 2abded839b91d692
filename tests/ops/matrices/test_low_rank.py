"""nuclear_norm beside PyTorch's; low-rank decompositions and lobpcg by what they have to fulfil."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import numgrad as ng
from tests.ops.nn.calls import agree

LINES = """
torch.nuclear_norm(x[0])
torch.nuclear_norm(x)
torch.nuclear_norm(x, True)
torch.nuclear_norm(x, keepdim=True)
torch.nuclear_norm(x, (0, 1))
torch.nuclear_norm(x, (0, 2), True)
torch.nuclear_norm(x, dim=(1, 2), keepdim=True)
torch.nuclear_norm(x, 1, 2)
torch.nuclear_norm(x, (0, 1), 3)
torch.nuclear_norm(x.long(), (0, 1))
torch.nuclear_norm(x, 0)
torch.nuclear_norm(x, (0, 5))
torch.pca_lowrank(x[0], 9)
torch.pca_lowrank(x[0], 2, True, -1)
torch.lobpcg(x[0, :2, :2], 1)
torch.svd_lowrank(x[0], 3)[1].detach()
torch.svd_lowrank(x.mT, 9)[1].detach()
torch.svd_lowrank(x[0], 3, M=x[1])[1].detach()
torch.pca_lowrank(x[0])[1][:2].detach()
torch.pca_lowrank(x[0], center=False)[1].detach()
""".strip().splitlines()


def operands(seed: int, dtype: str = "float64") -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).normal(size=(2, 3, 4)).astype(dtype)}


def test_values_gradients_and_refusals_are_pytorchs(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.nuclear_norm(torch.ones(1, 1))  # PyTorch says once that it is deprecated
    for line in LINES:
        agree(torch, line, operands(0), 1e-9)


def test_what_is_of_low_rank_is_found_again():
    ng.manual_seed(0)
    random = np.random.default_rng(0)
    for shape, rank in (((9, 5), 2), ((4, 8), 3), ((2, 6, 6), 2)):
        left, right = random.normal(size=(*shape[:-1], rank)), random.normal(size=(rank, shape[-1]))
        a = ng.tensor(left @ right)
        u, values, v = ng.svd_lowrank(a, q=rank)
        np.testing.assert_allclose((u * values[..., None, :] @ v.mH).numpy(), a.numpy(), atol=1e-9)
        expected = ng.linalg.svdvals(a)[..., :rank]
        np.testing.assert_allclose(values.numpy(), expected.numpy(), rtol=1e-9)
        u, values, v = ng.pca_lowrank(a, q=rank)
        centred = a - a.mean(-2, keepdim=True)
        found = (u * values[..., None, :] @ v.mH).numpy()
        np.testing.assert_allclose(found, centred.numpy(), atol=1e-9)


def test_eigenvalues_are_those_of_the_pair_of_matrices():
    random = np.random.default_rng(1)
    half, other = random.normal(size=(2, 9, 9))
    a, b = ng.tensor(half + half.T), ng.tensor(other @ other.T + 9 * np.eye(9))
    for largest in (True, False):
        values, vectors = ng.lobpcg(a, 3, b, largest=largest)
        np.testing.assert_allclose(
            (a @ vectors).numpy(), (b @ vectors * values).numpy(), atol=1e-10
        )
        exact = np.sort(np.linalg.eigvals(np.linalg.solve(b.numpy(), a.numpy())).real)
        expected = exact[::-1][:3] if largest else exact[:3]
        np.testing.assert_allclose(values.numpy(), expected, rtol=1e-9)
    assert ng.lobpcg(a, X=ng.ones(9, 2).double())[1].shape == (9, 2)


def test_derivatives_of_a_norm_and_of_eigenvalues():
    x = ng.tensor(np.random.default_rng(2).normal(size=(6, 6)), requires_grad=True)
    assert ng.autograd.gradcheck(lambda x: ng.nuclear_norm(x, (1, 0)), (x,))
    assert ng.autograd.gradcheck(lambda x: ng.lobpcg(x + x.mT, 2)[0], (x,))
    assert ng.autograd.gradcheck(lambda x: ng.svd_lowrank(x)[1], (x,), atol=1e-4)
