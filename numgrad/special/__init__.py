"""Special functions, as ``torch.special``: of probability, gamma functions and what is near them.

All are elementwise but `softmax`, `log_softmax` and `logsumexp`, and can be called in compiled code
as those of `numgrad.math` that have the same names.

>>> import numgrad as ng
>>> p = ng.tensor([0.25, 0.75], requires_grad=True)
>>> ng.special.entr(p).sum().backward()
>>> p.grad
tensor([ 0.3863, -0.7123])
"""

from numgrad.ops.special.aliases import ALIASES
from numgrad.ops.special.beta import special_beta as beta
from numgrad.ops.special.beta import special_betaln as betaln
from numgrad.ops.special.entropy import special_entr as entr
from numgrad.ops.special.entropy import special_xlog1py as xlog1py
from numgrad.ops.special.gamma import special_multigammaln as multigammaln
from numgrad.ops.special.gamma import special_polygamma as polygamma

digamma, gammaln, psi = (ALIASES[_name] for _name in ("digamma", "gammaln", "psi"))
gammainc, gammaincc = (ALIASES[_name] for _name in ("gammainc", "gammaincc"))
erf, erfc, erfinv = (ALIASES[_name] for _name in ("erf", "erfc", "erfinv"))
exp2, expit, expm1 = (ALIASES[_name] for _name in ("exp2", "expit", "expm1"))
log1p, logit, logsumexp = (ALIASES[_name] for _name in ("log1p", "logit", "logsumexp"))
log_softmax, softmax = (ALIASES[_name] for _name in ("log_softmax", "softmax"))
round, sinc, xlogy = (ALIASES[_name] for _name in ("round", "sinc", "xlogy"))

__all__ = [
    "beta",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]
