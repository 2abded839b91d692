"""Calls of these families are remembered, but for those of functions that are named here."""

from __future__ import annotations

from numgrad.ops.signatures.declared import DECLARED

FAMILIES = tuple(
    f"numgrad.ops.{name}."
    for name in ("indexing", "linalg", "matrices", "movement", "pointwise", "reduction")
)
# Their rules look at numbers, at where memory lies or at kinds of dtypes and return what they were
# given, come to a primitive by themselves, or are made of many calls that are remembered.
OTHERS = """
allclose angle argwhere as_strided as_strided_scatter conj conj_physical
detach div equal float_power is_conj is_contiguous is_neg linalg_matrix_rank
linalg_pinv linalg_vander lobpcg logsigmoid neg nonzero nuclear_norm pca_lowrank pinverse positive
pow put real repeat_interleave resolve_conj resolve_neg round softplus svd_lowrank
true_divide vander where
"""


def test_calls_of_all_functions_but_these_are_remembered() -> None:
    found = {
        declaration.name
        for function, declaration in DECLARED.items()
        if declaration.calls is None and function.__module__.startswith(FAMILIES)
    }
    assert found == set(OTHERS.split())
