"""Special functions, as ``torch.special``: of probability, gamma functions and what is near them.

All are elementwise but `softmax`, `log_softmax` and `logsumexp`, and can be called in compiled code
as those of `numgrad.math` that have the same names.

>>> import numgrad as ng
>>> p = ng.tensor([0.25, 0.75], requires_grad=True)
>>> ng.special.entr(p).sum().backward()
>>> p.grad
tensor([ 0.3863, -0.7123])
"""

from numgrad.ops.special.airy import special_airy_ai as airy_ai
from numgrad.ops.special.aliases import ALIASES
from numgrad.ops.special.bessel import special_bessel_j0 as bessel_j0
from numgrad.ops.special.bessel import special_bessel_j1 as bessel_j1
from numgrad.ops.special.bessel import special_bessel_y0 as bessel_y0
from numgrad.ops.special.bessel import special_bessel_y1 as bessel_y1
from numgrad.ops.special.bessel import special_spherical_bessel_j0 as spherical_bessel_j0
from numgrad.ops.special.beta import special_beta as beta
from numgrad.ops.special.beta import special_betaln as betaln
from numgrad.ops.special.entropy import special_entr as entr
from numgrad.ops.special.entropy import special_xlog1py as xlog1py
from numgrad.ops.special.gamma import special_multigammaln as multigammaln
from numgrad.ops.special.gamma import special_polygamma as polygamma
from numgrad.ops.special.incomplete_beta import special_betainc as betainc
from numgrad.ops.special.modified_bessel import special_i0e as i0e
from numgrad.ops.special.modified_bessel import special_i1 as i1
from numgrad.ops.special.modified_bessel import special_i1e as i1e
from numgrad.ops.special.modified_bessel import special_modified_bessel_i0 as modified_bessel_i0
from numgrad.ops.special.modified_bessel import special_modified_bessel_i1 as modified_bessel_i1
from numgrad.ops.special.modified_bessel import special_modified_bessel_k0 as modified_bessel_k0
from numgrad.ops.special.modified_bessel import special_modified_bessel_k1 as modified_bessel_k1
from numgrad.ops.special.modified_bessel import (
    special_scaled_modified_bessel_k0 as scaled_modified_bessel_k0,
)
from numgrad.ops.special.modified_bessel import (
    special_scaled_modified_bessel_k1 as scaled_modified_bessel_k1,
)
from numgrad.ops.special.normal import special_erfcx as erfcx
from numgrad.ops.special.normal import special_log_ndtr as log_ndtr
from numgrad.ops.special.normal import special_ndtr as ndtr
from numgrad.ops.special.normal import special_ndtri as ndtri
from numgrad.ops.special.orthogonal import POLYNOMIALS
from numgrad.ops.special.zeta import special_zeta as zeta

digamma, gammaln, psi = (ALIASES[_name] for _name in ("digamma", "gammaln", "psi"))
gammainc, gammaincc = (ALIASES[_name] for _name in ("gammainc", "gammaincc"))
erf, erfc, erfinv = (ALIASES[_name] for _name in ("erf", "erfc", "erfinv"))
exp2, expit, expm1 = (ALIASES[_name] for _name in ("exp2", "expit", "expm1"))
log1p, logit, logsumexp = (ALIASES[_name] for _name in ("log1p", "logit", "logsumexp"))
log_softmax, softmax = (ALIASES[_name] for _name in ("log_softmax", "softmax"))
round, sinc, xlogy = (ALIASES[_name] for _name in ("round", "sinc", "xlogy"))
i0 = ALIASES["i0"]
chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w = (
    POLYNOMIALS[f"chebyshev_polynomial_{_kind}"] for _kind in "tuvw"
)
(
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
) = (POLYNOMIALS[f"shifted_chebyshev_polynomial_{_kind}"] for _kind in "tuvw")
hermite_polynomial_h = POLYNOMIALS["hermite_polynomial_h"]
hermite_polynomial_he = POLYNOMIALS["hermite_polynomial_he"]
laguerre_polynomial_l = POLYNOMIALS["laguerre_polynomial_l"]
legendre_polynomial_p = POLYNOMIALS["legendre_polynomial_p"]

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "beta",
    "betainc",
    "betaln",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]
