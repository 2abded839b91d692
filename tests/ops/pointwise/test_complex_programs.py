"""Programs on complex tensors: promotion, views of their parts, functions made of others.

Each line prints the same as in PyTorch: values, dtypes, nodes, derivatives to second order.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd import gradcheck, gradgradcheck
from tests.ops.calls.test_complex_calls import ARRAYS, NAMES
from tests.ops.torch_comparison import compare

LINES = [
    # Promotion: a real operand's gradient is real.
    *("r * 1j", "r + (1 - 2j)", "1j - r", "2j / q", "q / (1 + 1j)", "r * m", "m - r", "m / q"),
    *("r ** 2j", "q ** m", "m ** r", "m ** 2", "m ** 3", "m ** -1", "m ** 0.5", "m ** (1 + 1j)"),
    *("2 ** m", "2j ** m", "(1 + 1j) ** q", "q.float() * m"),
    *("torch.where(r > 0, m, 2.0)", "torch.where(r > 0, r, 1j)", "m + torch.tensor(2)"),
    *("torch.tensor(1j) * r", "torch.tensor(1j) * r.float()", "torch.add(r, m, alpha=2j)"),
    *("torch.add(m, r, alpha=2)", "torch.sub(m, m * 2, alpha=1j)", "torch.rsub(m, r)"),
    *(
        "torch.addcmul(r, m, m, value=2)",
        "torch.addcmul(m, r, r, value=1j)",
        "torch.addcdiv(m, m, q)",
    ),
    *("torch.lerp(m, m * 2, 0.25)", "torch.lerp(m, m * 2, m * 0.1)", "torch.lerp(m, m, r)"),
    # Parts and conjugates.
    *("m.conj().imag", "m.conj().conj()", "torch.conj(r)", "m.resolve_conj()", "r.conj()"),
    *("torch.conj_physical(m)", "torch.resolve_neg(m)", "m.real + m.imag * 1j", "abs(m)"),
    *("m.abs() ** 2", "(m * m.conj()).real", "torch.view_as_real(m)[..., 1]", "-m.imag"),
    *("torch.angle(r)", "torch.angle(m * r)", "torch.sgn(r)"),
    *("torch.polar(q, r).angle()", "torch.complex(r, q).abs()"),
    # In place, through views of the parts too.
    "(a := m.clone(), a.real.mul_(r), a)[-1]",
    "(a := m.clone(), a.imag.add_(r), a)[-1]",
    "(a := m.clone(), a.imag.copy_(q), a * a)[-1]",
    "(a := m.clone(), a.real[1].zero_(), a.exp())[-1]",
    "(a := m.clone(), a[0].imag.mul_(2), a)[-1]",
    "(a := m.clone(), torch.view_as_real(a).mul_(2), a)[-1]",
    "(a := m.clone(), b := a.real, a.mul_(1j), b * 2)[-1]",
    "(a := r.reshape(3, 2, 2).clone(), torch.view_as_complex(a).mul_(1j), a)[-1]",
    "torch.view_as_complex(r.reshape(3, 2, 2)[..., :1].expand(3, 2, 2))",
    "torch.view_as_complex(r.reshape(2, 6).t())",
    "torch.view_as_complex(r.reshape(12).as_strided((3, 2), (3, 1)))",
    *("m.clone().mul_(r)", "m.clone().add_(1j)", "m.clone().exp_()", "m.clone().conj_physical_()"),
    *("r.clone().mul_(m)", "r.clone().add_(1j)", "m.clone().abs_()", "m.clone().angle_()"),
    *("m.clone().sgn_()", "m.clone().div_(m)", "m.clone().pow_(2)", "m.clone().eq_(m)"),
    # What has no order.
    *("m > 1", "m < m", "m <= 1j", "m.clamp(0, 1)", "m == m", "m != r", "m.floor()", "m.sign()"),
    *("m % 2", "m // 2", "torch.fmod(m, m)", "torch.atan2(m, m)", "torch.relu(m)", "m.round()"),
    *("torch.erf(m)", "torch.hypot(m, m)", "torch.copysign(m, r)", "torch.deg2rad(m)", "m.frac()"),
    *("torch.isnan(m)", "torch.isinf(m)", "torch.isfinite(m)", "torch.isreal(m)"),
    *("torch.isclose(m, m)", "torch.nonzero(z)"),
    *("torch.logical_not(z)", "torch.logical_and(z, z)", "torch.nan_to_num(m)", "m.bitwise_not()"),
    *("torch.signbit(m)", "torch.isposinf(m)", "torch.xlogy(m, m)", "torch.logit(m)"),
    # Functions made of others.
    *(
        "torch.square(m)",
        "torch.float_power(m, 2)",
        "torch.float_power(q, 1j)",
        "torch.outer(u, v)",
    ),
    *("torch.kron(m, s)", "torch.tensordot(x, y, 1)", "torch.meshgrid(u, v, indexing='ij')"),
    *("torch.movedim(x, 0, 2)", "torch.vstack([m, m])", "torch.dstack([m, r])", "m.flatten()"),
    *("torch.tensor_split(m, 2)", "torch.diagflat(u)", "torch.ger(u, v)", "m.unflatten(1, (2, 2))"),
    *(
        "torch.full_like(m, 1j)",
        "torch.full((2,), 1j)",
        "torch.ones_like(m)",
        "m.new_full((2,), 1j)",
    ),
    *("torch.linspace(0j, 1 + 1j, 3)", "torch.eye(2, dtype=torch.complex64)", "m.type_as(r)"),
    *("torch.arange(3, dtype=torch.complex64)", "torch.einsum('ij,ij->', m, m.conj())"),
    *("m.norm()", "(m @ v).abs().sum()"),
    *(),
]
# Where PyTorch's second derivatives are nan: those of abs, sgn and angle at 0.
FIRST_ORDER = ["torch.sgn(z)", "torch.angle(z)", "torch.abs(z)"]
# Questions and conversions.
ANSWERS = [
    *("m.is_complex()", "torch.is_complex(m)", "torch.is_floating_point(m)", "m.is_conj()"),
    *("torch.is_conj(r)", "torch.is_neg(r)", "torch.allclose(m, m)", "torch.equal(m, m)"),
    *("torch.result_type(r, 1j)", "torch.result_type(r.float(), m)", "torch.result_type(p, r)"),
    *("torch.promote_types(r.dtype, m.dtype)", "torch.can_cast(m.dtype, r.dtype)", "m.item()"),
    *("p.item()", "p.tolist()", "complex(p)", "bool(p)", "float(p)", "int(p)", "float(p.real)"),
    *("torch.is_complex(1j)", "torch.is_floating_point(1.0)"),
    "m.requires_grad_().sum().backward()",
    "(m.requires_grad_().abs().sum().backward(), m.grad.dtype)[1]",
    "(r.requires_grad_(), (r * m).abs().sum().backward(), r.grad.dtype)[2]",
]


def named(line: str) -> list[str]:
    return sorted(set(NAMES.findall(re.sub(r"\b[ab] :=|'[^']*'", "", line))) & ARRAYS.keys())


def compare_line(torch: Any, line: str, order: int) -> None:
    names = named(line)

    def call(module: Any, *tensors: Any) -> Any:
        return eval(line, {"torch": module, **dict(zip(names, tensors, strict=True))})

    compare(torch, call, *[ARRAYS[name] for name in names], order=order)


@pytest.mark.parametrize("line", LINES)
def test_line_is_pytorchs(torch, line):
    compare_line(torch, line, 2)


@pytest.mark.parametrize("line", FIRST_ORDER)
def test_line_is_pytorchs_to_first_order(torch, line):
    compare_line(torch, line, 1)


@pytest.mark.parametrize("line", ANSWERS)
def test_answer_is_pytorchs(torch, line):
    def answer(module: Any) -> Any:
        tensors = {name: module.from_numpy(ARRAYS[name].copy()) for name in named(line)}
        try:
            return repr(eval(line, {"torch": module, **tensors}))
        except Exception as error:
            return type(error), str(error).split("\n")[0]

    assert answer(ng) == answer(torch)


def part_overwritten(z: ng.Tensor, x: ng.Tensor) -> ng.Tensor:
    z = z.clone()
    z.real[0].mul_(x[1])
    z.imag.sub_(x)
    return z * z.conj() + z


FUNCTIONS = {
    "a real loss of complex numbers": (lambda z: (z * z).real.sum() + z.abs().sum(), "c"),
    "complex numbers of real ones": (lambda x, y: ng.complex(x, y).exp(), "ff"),
    "lengths and angles": (lambda x, y: ng.polar(x, y) * 1j, "ff"),
    "a real one beside a complex one": (lambda z, x: z * x + x / z, "cf"),
    "views of the parts": (lambda z: z.real * z.imag[:, :1], "c"),
    "writes to the parts": (part_overwritten, "cf"),
    "real numbers as complex ones": (
        lambda x: ng.view_as_complex(x.reshape(-1, 2)) ** 2,
        "f",
    ),
    "complex numbers as real ones": (lambda z: ng.view_as_real(z).prod(-1), "c"),
    "several outputs, some real": (lambda z: (z.conj() * 2, z.abs(), z.angle()), "c"),
    "a holomorphic function": (lambda z: (z.sin() / z.cosh()).sqrt(), "c"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_a_program_are_those_of_finite_differences(name):
    function, kinds = FUNCTIONS[name]
    random = np.random.default_rng(6)
    operands = []
    for kind in kinds:
        values = random.uniform(0.5, 1.5, (2, 2))
        if kind == "c":
            values = values + 1j * random.uniform(0.3, 1.0, (2, 2))
        operands.append(ng.from_numpy(values).requires_grad_())
    assert gradcheck(function, operands, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(function, operands)
