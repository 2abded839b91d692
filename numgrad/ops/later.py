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
    "spatial": Later(
        functions=_split(
            "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution",
            "avg_pool1d max_pool1d max_pool2d max_pool3d max_pool1d_with_indices",
            "adaptive_avg_pool1d adaptive_max_pool1d pixel_shuffle pixel_unshuffle channel_shuffle",
        ),
        methods=(),
        primitives=_split(
            "convolution convolution_with_bias convolution_weight im2col col2im",
            "avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward",
            "adaptive_avg_pool2d adaptive_avg_pool2d_backward adaptive_avg_pool3d",
            "adaptive_avg_pool3d_backward max_pool2d_with_indices max_pool3d_with_indices",
            "adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices",
            "pixel_shuffle pixel_unshuffle channel_shuffle reflection_pad1d",
            "reflection_pad1d_backward replication_pad1d replication_pad1d_backward",
            "circular_pad1d circular_pad1d_backward upsample_nearest1d",
            "upsample_nearest1d_backward upsample_nearest_exact1d",
            "upsample_nearest_exact1d_backward reflection_pad2d reflection_pad2d_backward",
            "replication_pad2d replication_pad2d_backward circular_pad2d circular_pad2d_backward",
            "upsample_nearest2d upsample_nearest2d_backward upsample_nearest_exact2d",
            "upsample_nearest_exact2d_backward reflection_pad3d reflection_pad3d_backward",
            "replication_pad3d replication_pad3d_backward circular_pad3d circular_pad3d_backward",
            "upsample_nearest3d upsample_nearest3d_backward upsample_nearest_exact3d",
            "upsample_nearest_exact3d_backward upsample_linear1d upsample_linear1d_backward",
            "upsample_bilinear2d upsample_bilinear2d_backward upsample_trilinear3d",
            "upsample_trilinear3d_backward upsample_bicubic2d upsample_bicubic2d_backward",
            "upsample_bilinear2d_aa upsample_bilinear2d_aa_backward upsample_bicubic2d_aa",
            "upsample_bicubic2d_aa_backward",
        ),
    ),
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
        functions=_split("lgamma digamma polygamma mvlgamma igamma igammac i0 i0_"),
        methods=_split(
            "lgamma lgamma_ digamma digamma_ polygamma polygamma_ mvlgamma mvlgamma_",
            "igamma igamma_ igammac igammac_ i0 i0_",
        ),
        primitives=_split(
            "entr xlog1py xlog1py_of_number xlog1py_by_number",
            "lgamma digamma polygamma mvlgamma igamma igammac beta betaln",
            "erfcx ndtr log_ndtr ndtri i0 i0e i1 i1e modified_bessel_i0 modified_bessel_i1",
            "modified_bessel_k0 modified_bessel_k1",
            "scaled_modified_bessel_k0 scaled_modified_bessel_k1",
            "bessel_j0 bessel_j1 bessel_y0 bessel_y1 spherical_bessel_j0",
            "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v",
            "chebyshev_polynomial_w shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u",
            "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w hermite_polynomial_h",
            "hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p",
            "airy_ai betainc zeta zeta_of_number zeta_by_number",
        ),
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
    "statistics": Later(
        functions=_split(
            "block_diag cartesian_prod cdist combinations corrcoef cov cubic_spline",
            "cumulative_trapezoid diff dist gradient interp median mode nanmedian nanquantile",
            "pdist piecewise_polynomial quantile renorm trapezoid trapz",
        ),
        methods=_split(
            "corrcoef cov diff dist median mode nanmedian nanquantile quantile renorm renorm_",
        ),
        primitives=_split(
            "block_diag cdist dist median median_along mode nanmedian nanmedian_along pdist",
            "renorm solve_tridiagonal",
        ),
    ),
    "numeric": Later(
        functions=_split("frexp gcd gcd_ lcm lcm_ ldexp ldexp_ nextafter"),
        methods=_split("frexp gcd gcd_ lcm lcm_ ldexp ldexp_ nextafter nextafter_"),
        primitives=_split("frexp gcd lcm ldexp ldexp_of_power nextafter nextafter_half"),
        elementwise=True,
    ),
    "scattering": Later(
        functions=_split("scatter_reduce index_reduce"),
        methods=_split("scatter_reduce scatter_reduce_ index_reduce index_reduce_"),
        primitives=_split("scatter_reduce index_reduce"),
    ),
    "sampling": Later(
        functions=_split("binomial multinomial poisson"),
        methods=("multinomial",),
        primitives=(),
    ),
    "signal": Later(
        functions=_split(
            "bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft",
        ),
        methods=_split("istft stft"),
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
