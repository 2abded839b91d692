"""Derivatives of functions of tensors, by plain autograd: ``torch.autograd.functional``.

The functions of `numgrad.func` do the same for pytrees, and compose; these take and return tensors
or tuples of them, and know ``create_graph`` and ``strict``.
"""

from numgrad.autograd.functional.jacobians import hessian, jacobian
from numgrad.autograd.functional.products import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
