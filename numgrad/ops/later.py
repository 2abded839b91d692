"""Operations that are loaded when one of their names is first asked for: importing takes longer.

Their names are taken from the beginning. `LATER` lists them by the package that they are in, beside
this file.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

from numgrad.graph.upward import upward
from numgrad.math.functions import LATER_FORMULAS

__all__ = ["LATER", "Later", "load_all", "load_package", "package_of"]


class Later(NamedTuple):
    """The names in one package of operations.

    Attributes
    ----------
    functions, methods : tuple of str
        What becomes ``numgrad.name`` and ``Tensor.name``.
    primitives : tuple of str
        What enters the catalogue.
    elementwise : bool
        Whether the primitives are functions of numbers as well, in `numgrad.math`.
    """

    functions: tuple[str, ...]
    methods: tuple[str, ...]
    primitives: tuple[str, ...]
    elementwise: bool = False


def _split(*lines: str) -> tuple[str, ...]:
    return tuple(" ".join(lines).split())


_MATRIX_METHODS = _split(
    "cholesky cholesky_inverse cholesky_solve det inverse logdet slogdet triangular_solve",
    "qr svd pinverse matrix_exp matrix_power lu lu_solve",
    "cross eig lstsq solve symeig geqrf orgqr ormqr",
)
# A package that needs another stands behind it.
LATER = {
    "matrices": Later(
        functions=(
            *_MATRIX_METHODS,
            *_split("lu_unpack vander chain_matmul frobenius_norm matrix_rank"),
        ),
        methods=_MATRIX_METHODS,
        primitives=_split(
            "cholesky linalg_cholesky_ex cholesky_inverse cholesky_solve linalg_solve_triangular",
            "triangular_solve",
            "linalg_solve_ex solve_factored linalg_inv_ex linalg_det linalg_slogdet cofactors",
            "linalg_eigh linalg_svd linalg_qr linalg_pinv linalg_matrix_exp",
            "linalg_lu linalg_lu_factor_ex exchange_rows linalg_lu_solve lu_unpack",
            "linalg_cross linalg_eig linalg_lstsq linalg_householder_product ormqr",
        ),
    ),
    "fourier": Later(functions=(), methods=(), primitives=_split("fft_c2c fft_r2c fft_c2r")),
    "nn": Later(
        functions=_split(
            "celu celu_ hardshrink prelu rrelu rrelu_ selu selu_ threshold threshold_",
            "cosine_similarity pairwise_distance",
        ),
        methods=_split("hardshrink prelu"),
        primitives=_split(
            "threshold hardtanh leaky_relu hardshrink softshrink hardsigmoid hardswish",
            "prelu_kernel gelu gelu_tanh silu mish elu celu",
        ),
        elementwise=True,
    ),
    "special": Later(
        functions=(),
        methods=(),
        primitives=_split("entr xlog1py xlog1py_of_number xlog1py_by_number"),
        elementwise=True,
    ),
    "searching": Later(
        functions=_split(
            "bincount bucketize histc histogram histogramdd isin searchsorted unique",
            "unique_consecutive",
        ),
        methods=_split("bincount histc histogram unique unique_consecutive"),
        primitives=(),
    ),
    "sampling": Later(
        functions=_split("binomial multinomial poisson"),
        methods=("multinomial",),
        primitives=(),
    ),
}
_PACKAGES = {
    name: package
    for package, later in LATER.items()
    for name in (*later.functions, *later.methods, *later.primitives)
}


def package_of(name: str) -> str | None:
    """Return the package in which a name is, None if it is in none."""
    return _PACKAGES.get(name)


def load_package(package: str) -> None:
    """Load a package of operations, if that has not been done."""
    importlib.import_module(f"numgrad.ops.{package}")


for _package, _later in LATER.items():
    if _later.elementwise:
        _load = functools.partial(load_package, _package)
        LATER_FORMULAS.update(dict.fromkeys(_later.primitives, _load))


def load_all() -> None:
    """Load all of them: for who wants every operation there is."""
    for package in LATER:
        load_package(package)


def _matrix_norm(*arguments: Any) -> Any:
    """Load what has norms of matrices, which takes this function's place."""
    load_package("matrices")
    return upward.matrix_norm(*arguments)


upward.matrix_norm = _matrix_norm
