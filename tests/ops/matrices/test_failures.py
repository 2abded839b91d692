"""What is raised where LAPACK finds no eigenvalues or singular values, which no input here does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng

CALLS = [
    ("eig", lambda A: ng.linalg.eig(A), "linalg.eig: ", "eigenvalues", 3),
    ("eigvals", lambda A: ng.linalg.eigvals(A), "linalg.eigvals: ", "eigenvalues", 3),
    ("eigh", lambda A: ng.linalg.eigh(A), "linalg.eigh: ", "eigenvalues", 3),
    ("svd", lambda A: ng.linalg.svd(A[..., :2, :]), "linalg.svd: ", "singular values", 2),
    ("svd", lambda A: ng.linalg.svdvals(A[..., :2]), "linalg.svd: ", "singular values", 2),
]


@pytest.mark.parametrize(("name", "call", "function", "what", "code"), CALLS)
@pytest.mark.parametrize("batch", [(), (2,), (2, 2)])
def test_a_failure_of_lapack_names_function_matrix_and_order(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    call: Any,
    function: str,
    what: str,
    code: int,
    batch: tuple[int, ...],
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise np.linalg.LinAlgError("did not converge")

    monkeypatch.setattr(np.linalg, name, fail)
    A = ng.arange(9.0).reshape(3, 3).expand(*batch, 3, 3)
    where = "(Batch element 0): " if batch else ""
    with pytest.raises(ng.linalg.LinAlgError) as caught:
        call(A)
    assert str(caught.value) == (
        f"{function}{where}The algorithm failed to converge because the input matrix is "
        f"ill-conditioned or has too many repeated {what} (error code: {code})."
    )
    assert isinstance(caught.value.__cause__, np.linalg.LinAlgError)
