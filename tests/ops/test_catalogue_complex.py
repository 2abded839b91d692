"""Every operation of the catalogue on complex tensors, against finite differences.

Nothing here names an operation that takes complex numbers: whatever enters the catalogue is tested,
and one that refuses them has to be in a list. Gradients are those of PyTorch's convention: of a
real L(z), they are dL/dx + i dL/dy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numgrad as ng
from numgrad.autograd import grad, gradcheck, gradgradcheck
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from tests.ops.catalogue_strategies import array_primitives
from tests.rows import names_of

# Without an order among their numbers, defined for real numbers alone, or without a derivative for
# complex ones, as in PyTorch.
REAL_ONLY = {
    *("amax", "amin", "max", "min", "max_along_dim", "min_along_dim", "aminmax"),
    *("sort", "sort_stable", "topk", "kthvalue", "cummax", "cummin"),
    *("softmax", "log_softmax", "nansum", "complex", "polar", "view_as_complex"),
    *("select_scatter", "slice_scatter"),
    *names_of("REAL_ONLY"),
}
# Parts of derivatives of real tensors; complex ones take another way.
PARTS_FOR_REAL = {"softmax_backward", "log_softmax_backward", "logsumexp_backward"}
PARTS_FOR_REAL |= names_of("PARTS_FOR_REAL")
ELEMENTWISE = [
    primitive
    for primitive in CATALOGUE.values()
    if isinstance(primitive, ElementwisePrimitive)
    and "c" in primitive.accepts
    and any(rule is not None for rule in primitive.rules)
]
# Kernels of complex64 are emitted as those of complex128 are; these have one of every kind.
SINGLE = ["mul", "true_divide", "where", "pow_tensors", "exp", "log", "acosh", "abs", "angle"]
SAMPLES = [
    pytest.param(sample, id=f"{primitive.name}-{number}")
    for primitive in array_primitives()
    if primitive.name not in REAL_ONLY | PARTS_FOR_REAL
    for number, sample in enumerate(primitive.samples)
]

all_elementwise = pytest.mark.parametrize(
    "primitive", ELEMENTWISE, ids=[primitive.name for primitive in ELEMENTWISE]
)


def drawn(primitive: ElementwisePrimitive, dtype: str, real: int = -1) -> list[Any]:
    """Return complex operands that require grad, one of them real where told."""
    random = np.random.default_rng(4)
    operands: list[Any] = []
    for position, domain in enumerate(primitive.domains):
        if domain.is_number:
            operands.append(domain.intervals[0][0])
        elif domain.is_mask:
            operands.append(ng.from_numpy(random.random((2, 3)) < 0.5))
        else:
            shape = (2, 3) if position != 1 else (3,)
            values = domain.draw(shape, random, is_complex=position != real)
            kind = dtype if position != real else dtype.replace("complex128", "float64")
            operands.append(ng.from_numpy(values.astype(kind)).requires_grad_())
    return operands


def numeric(primitive: ElementwisePrimitive) -> list[int]:
    """Return the positions of operands that are neither masks nor static numbers."""
    return [i for i, d in enumerate(primitive.domains) if not (d.is_mask or d.is_number)]


@all_elementwise
def test_elementwise_derivatives_are_those_of_finite_differences(primitive):
    operands = drawn(primitive, "complex128")
    assert gradcheck(primitive, operands, fast_mode=True, check_forward_ad=True)
    assert gradgradcheck(primitive, operands, fast_mode=True)


@pytest.mark.parametrize(
    ("primitive", "real"),
    [
        pytest.param(primitive, position, id=f"{primitive.name}-{primitive.inputs[position]}")
        for primitive in ELEMENTWISE
        if len(numeric(primitive)) > 1
        for position in numeric(primitive)
    ],
)
def test_gradient_of_a_real_operand_beside_complex_ones_is_real(primitive, real):
    operands = drawn(primitive, "complex128", real)
    assert gradcheck(primitive, operands, fast_mode=True)
    output = primitive(*operands)
    (gradient,) = grad(output, operands[real], ng.ones_like(output), allow_unused=True)
    assert gradient is None or gradient.dtype is ng.float64


@pytest.mark.parametrize("name", ["abs", "angle", "sgn"])
def test_derivatives_at_zero_are_zero(name):
    """Nothing is divided by the size 0 on the way, which would make the second derivative nan."""
    z = ng.tensor([0j, 1 + 2j], dtype=ng.complex128, requires_grad=True)
    value = getattr(ng, name)(z)
    for order in (1, 2):
        parts = value.real + value.imag if value.is_complex() else value
        (value,) = grad(parts.sum(), z, create_graph=order == 1)
        assert value[0].item() == 0
        assert np.isfinite(value.numpy(force=True)).all()


@pytest.mark.parametrize("name", SINGLE)
def test_complex64_agrees_with_complex128(name):
    """Values and gradients in complex64 are those in complex128 to 64 roundings of their scale."""
    primitive = CATALOGUE[name]
    double = drawn(primitive, "complex128")
    single = [
        x.detach().to(ng.complex64).requires_grad_()
        if isinstance(x, ng.Tensor) and x.is_complex()
        else x
        for x in double
    ]
    # The double precision operands are the same numbers.
    double = [
        x.detach().to(ng.complex128).requires_grad_()
        if isinstance(x, ng.Tensor) and x.is_complex()
        else x
        for x in single
    ]
    found = []
    for operands in (single, double):
        output = primitive(*operands)
        leaves = [x for x in operands if isinstance(x, ng.Tensor) and x.requires_grad]
        gradients = grad(output, leaves, ng.ones_like(output), allow_unused=True)
        found.append([output, *(g for g in gradients if g is not None)])
    for low, high in zip(*found, strict=True):
        assert low.dtype in (ng.complex64, ng.float32)
        scale = max(1.0, float(high.detach().abs().max()))
        np.testing.assert_allclose(low.numpy(force=True), high.numpy(force=True), atol=8e-6 * scale)


def make_complex(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Any:
    """Return what samples make their tensors with: numbers off the axes."""
    random = np.random.default_rng(shape)
    values = random.uniform(low, high, shape) + 1j * random.uniform(low, high, shape)
    return ng.from_numpy(np.asarray(values)).requires_grad_()


@pytest.mark.sampled(0.18)
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_array_derivatives_are_those_of_finite_differences(sample):
    function, tensors, keywords = sample(make_complex)

    def bound(*arguments: Any) -> Any:
        return function(*arguments, **keywords)

    assert gradcheck(bound, tensors, fast_mode=True, check_forward_ad=True)
    assert gradgradcheck(bound, tensors, fast_mode=True)


@pytest.mark.parametrize("name", sorted(REAL_ONLY))
def test_what_is_real_only_refuses_complex_numbers(name):
    for sample in CATALOGUE[name].samples:
        function, tensors, keywords = sample(make_complex)
        if name in ("softmax", "log_softmax") and not tensors[0].numel():
            continue  # PyTorch looks at no dtype then
        with pytest.raises((RuntimeError, NotImplementedError)):
            function(*tensors, **keywords)
