"""NumPy's warnings never reach the user, whatever the numbers are.

Every operation of the catalogue runs on zeros, subnormal, huge and infinite numbers and nan, with
cotangents and tangents like these, to the second derivative: eagerly, under `jit`, and as a
dispatcher. Gradients like these are added up.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numgrad as ng
from numgrad.autograd import grad
from numgrad.base.float_errors import restore, silence, silent
from numgrad.graph.tensor import Tensor
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from tests.cases import examples
from tests.ops.test_catalogue_torch import call, grid, to_module
from tests.rows import names_of

DTYPES = ("float32", "float64", "complex128")
EAGER_DTYPES = ("float16", *DTYPES)  # which nothing is compiled for
# Parts of operations that are given real tensors only.
REAL_ONLY = {"log_softmax_backward", "logsumexp_backward", "softmax_backward"}
REAL_ONLY |= names_of("PARTS_FOR_REAL")
# What an operation refuses a dtype or (under jit) a call with. A warning is none of them.
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, ng.TraceError)


def hostile(dtype: str) -> list[float]:
    limits = np.finfo(dtype)
    small, large = float(limits.smallest_subnormal), float(limits.max)
    return [0.0, -0.0, 1.5, -0.75, small, large, -large, np.inf, -np.inf, np.nan]


@contextlib.contextmanager
def strict() -> Iterator[None]:
    """Make a warning an error, and have NumPy warn of all but underflow, as it does by default."""
    with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


def drawn(random: np.random.Generator, shape: Any, dtype: str) -> np.ndarray[Any, Any]:
    values = np.array(hostile(dtype))
    numbers = random.choice(values, shape)
    if dtype.startswith("complex"):
        with np.errstate(all="ignore"):
            numbers = numbers + 1j * random.choice(values, shape)
    return np.asarray(numbers).astype(dtype)


def with_derivatives(
    function: Callable[..., Any], seed: int, orders: tuple[int, ...] = (1, 2)
) -> Callable[..., Any]:
    """Return a function that gives results and their derivatives with hostile cotangents."""

    def derived(*tensors: Any) -> list[Any]:
        random = np.random.default_rng(seed)
        inputs = [t for t in tensors if isinstance(t, Tensor) and t.requires_grad]
        result = function(*tensors)
        values = list(result) if isinstance(result, (tuple, list)) else [result]
        results = list(values)
        for order in orders:
            moving = [v for v in values if isinstance(v, Tensor) and v.requires_grad]
            if not moving or not inputs:
                break
            cotangents = [
                ng.from_numpy(drawn(random, v.shape, str(v.dtype).removeprefix("torch.")))
                for v in moving
            ]
            found = grad(
                moving, inputs, cotangents, create_graph=order < orders[-1], allow_unused=True
            )
            values = [g for g in found if g is not None]
            results += values
        return results

    return derived


def pushed_and_added(function: Callable[..., Any], tensors: list[Any], seed: int) -> None:
    """Push hostile tangents forward, and add gradients of hostile cotangents up in ``.grad``."""
    random = np.random.default_rng(seed)

    def like(tensor: Any) -> Any:
        name = str(tensor.dtype).removeprefix("torch.")
        return ng.from_numpy(drawn(random, tuple(tensor.shape), name))

    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    result = function(*leaves)
    for each in result if isinstance(result, (tuple, list)) else [result]:
        if isinstance(each, Tensor) and each.requires_grad:
            for _ in range(2):
                each.backward(like(each), retain_graph=True)
    primals = tuple([tensor.detach() for tensor in tensors])
    ng.func.jvp(function, primals, tuple(map(like, primals)))


def elementwise_case(primitive: ElementwisePrimitive, dtype: str) -> tuple[Any, list[Any]]:
    """Return a call and its tensors, which meet in all combinations."""
    with np.errstate(all="ignore"):
        operands = grid(primitive, hostile(dtype), dtype)
        operands = [
            o * np.asarray(1 - 1j, o.dtype) if np.asarray(o).dtype.kind == "c" else o
            for o in operands
        ]
    tensors = to_module(ng, operands, requires_grad=True)

    def function(*given: Any) -> Any:
        rest = iter(given)
        return call(ng, primitive, [next(rest) if isinstance(t, Tensor) else t for t in tensors])

    return function, [t for t in tensors if isinstance(t, Tensor)]


def sample_case(sample: Any, dtype: str, seed: int) -> tuple[Any, list[Any]]:
    random = np.random.default_rng(seed)

    def make(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Tensor:
        return ng.from_numpy(drawn(random, shape, dtype)).requires_grad_()

    function, tensors, keywords = sample(make)
    return lambda *given: function(*given, **keywords), list(tensors)


def cases(dtypes: tuple[str, ...], primitives: Iterable[Any] = CATALOGUE.values()) -> list[Any]:
    """Return every operation, sample and dtype."""
    found: list[Any] = []
    for primitive, dtype in itertools.product(primitives, dtypes):
        kind = np.dtype(dtype).kind
        if isinstance(primitive, ElementwisePrimitive):
            found += [(primitive, None, dtype)] * (kind in primitive.accepts)
        elif kind == "f" or primitive.name not in REAL_ONLY:
            found += [(primitive, sample, dtype) for sample in primitive.samples]
    return found


def built(case: Any, seed: int) -> tuple[Any, list[Any]]:
    primitive, sample, dtype = case
    if sample is None:
        return elementwise_case(primitive, dtype)
    return sample_case(sample, dtype, seed)


@pytest.mark.sampled(0.0096)
@pytest.mark.parametrize("dtype", EAGER_DTYPES)
@pytest.mark.parametrize("primitive", CATALOGUE.values(), ids=CATALOGUE)
def test_no_operation_lets_numpy_warn(primitive: Any, dtype: str) -> None:
    for seed, case in itertools.product(range(3), cases((dtype,), [primitive])):
        if case[1] is None and seed:
            continue  # all combinations of numbers were there
        with strict(), contextlib.suppress(*REFUSALS):
            function, tensors = built(case, seed)
            try:
                with_derivatives(function, seed)(*tensors)
                pushed_and_added(function, tensors, seed)
            except RuntimeWarning as warning:  # an Exception, but none of the refusals
                pytest.fail(f"{case[0].name}: {warning}")


@given(case=st.sampled_from(cases(DTYPES)), seed=st.integers(0, 99))
@settings(max_examples=examples(5, in_sample=2))
def test_no_compiled_operation_lets_numpy_warn(case: Any, seed: int) -> None:
    assert_compiled_is_quiet(case, seed)


# What is not compiled but called as it stands, or left to BLAS.
WHOLE = ("mm", "dot", "bmm", "addmv", "addr", "addbmm")


@pytest.mark.sampled(0.072)
@pytest.mark.parametrize(
    "case",
    [c for c in cases(("float64",)) if c[0].name in WHOLE and c[1] is c[0].samples[0]],
    ids=lambda c: c[0].name,
)
def test_no_product_in_a_compiled_function_lets_numpy_warn(case: Any) -> None:
    assert_compiled_is_quiet(case, 1)


def assert_compiled_is_quiet(case: Any, seed: int) -> None:
    function, tensors = built(case, seed)
    derived = with_derivatives(function, seed, (1,))
    with strict(), contextlib.suppress(*REFUSALS):
        try:
            compiled = ng.jit(derived)
            compiled(*tensors)
            compiled(*tensors)  # now the short way
            arrays = [tensor.numpy(force=True) for tensor in tensors]
            compiled.lower(*tensors).dispatcher(*arrays)
        except RuntimeWarning as warning:
            pytest.fail(f"{case[0].name}: {warning}")


def test_products_that_overflow_are_silent_in_threads_blocks_and_loops() -> None:
    x = ng.full((3, 3), 1e300, dtype=ng.float64, requires_grad=True)
    with strict():
        y = x @ x @ (-x)
        y.sum().backward()
        compiled = ng.jit(lambda x: (x @ x @ (-x)).sum())
        assert compiled(x.detach()).isnan() or compiled(x.detach()).isinf()
        for _ in range(3):
            ng.jit(ng.func.grad(lambda x: (x @ x @ (-x)).sum()))(x.detach())
    assert not x.grad.isfinite().all()


CASTS = ("float32", "float64", "int64", "int8", "uint8", "bool", "complex64")


@pytest.mark.parametrize(("source", "target"), list(itertools.product(DTYPES, CASTS)))
def test_no_conversion_lets_numpy_warn(source: str, target: str) -> None:
    dtype = getattr(ng, target)
    array = drawn(np.random.default_rng(0), (4, 5), source)
    with strict():
        tensor = ng.from_numpy(array)
        results = [
            tensor.to(dtype),
            tensor.t().to(dtype),
            ng.tensor(array, dtype=dtype),
            ng.zeros(4, 5, dtype=dtype).copy_(tensor),
            ng.zeros(4, 5).masked_fill_(tensor == tensor, 1.5).to(dtype),
        ]
        if target != "bool" and not (source.startswith("complex") and target[0] != "c"):
            results.append(tensor.sum(0, dtype=dtype))
        indices = ng.tensor([0, 1])
        written = ng.zeros(4, 5, dtype=dtype)
        written[indices] = tensor[indices].to(dtype)
        results.append(written)
        for result in results:
            repr(result)
            result.tolist()


def test_the_users_own_settings_are_as_they_were() -> None:
    with np.errstate(all="raise"):
        before = np.geterr()
        ng.tensor([[1e300]]).double() @ ng.tensor([[1e300]]).double()
        assert np.geterr() == before
        with pytest.raises(FloatingPointError):
            np.float64(1e300) * np.float64(1e300)
        with pytest.raises(ValueError, match="shapes"):
            silent(np.dot)(np.ones(2), np.ones(3))
        assert np.geterr() == before
    outer = silence()
    inner = silence()
    restore(inner)
    assert set(np.geterr().values()) == {"ignore"}
    restore(outer)
    assert "ignore" not in {np.geterr()[each] for each in ("divide", "over", "invalid")}
