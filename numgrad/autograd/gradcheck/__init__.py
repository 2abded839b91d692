"""gradcheck and gradgradcheck: derivatives held against finite differences."""

from numgrad.autograd.gradcheck.gradcheck import gradcheck, gradgradcheck
from numgrad.autograd.gradcheck.jacobians import GradcheckError

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
