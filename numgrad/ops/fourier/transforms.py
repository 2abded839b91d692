"""The transforms by their names: along one dim, two or many; of complex, real, Hermitian input.

They are families of three: what differs is which dims are transformed if none are named. All take
`norm`: ``"backward"`` divides the inverse by the length, ``"forward"`` the forward transform, and
``"ortho"`` both by its square root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from numgrad.base import dtypes
from numgrad.graph.tensor import Tensor
from numgrad.ops.arguments.dims import wrap_dim
from numgrad.ops.core.out_argument import write_result
from numgrad.ops.fourier.primitives import (
    complex_to_complex,
    complex_to_real,
    real_to_complex,
    resized,
)
from numgrad.ops.movement.casts import cast
from numgrad.ops.pointwise.complex import conj, conj_physical
from numgrad.ops.signatures.declared import declare

__all__ = ["TRANSFORMS"]

TRANSFORMS: dict[str, Callable[..., Any]] = {}
# How forward transforms and inverse ones are normalised: by nothing, the root, the length.
_NORMS = {
    True: {None: 0, "backward": 0, "ortho": 1, "forward": 2},
    False: {None: 2, "backward": 2, "ortho": 1, "forward": 0},
}


def _normalization(norm: str | None, forward: bool) -> int:
    found = _NORMS[forward].get(norm)
    if found is None:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return found


def _floating(input: Tensor, complex: bool = False) -> Tensor:
    """Return the input in a dtype that can be transformed."""
    dtype = input.dtype
    if not dtype.is_complex and not dtype.is_floating_point:
        dtype = dtypes.default_dtype()
    if dtype is dtypes.float16:
        raise RuntimeError("Unsupported dtype Half")
    if complex and not dtype.is_complex:
        dtype = dtypes.complex64 if dtype is dtypes.float32 else dtypes.complex128
    return cast(input, dtype.numpy)


def _check_points(count: int) -> None:
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")


class _Plan(NamedTuple):
    """Which dims are transformed, of how many points each."""

    dims: tuple[int, ...]
    points: dict[int, int]


# --- along one dim --------------------------------------------------------------------------------


def _only_dim(input: Tensor, n: int | None, dim: int) -> _Plan:
    shape = input._array.shape
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, len(shape))
    count = shape[at] if n is None else n
    _check_points(count)
    return _Plan((at,), {} if n is None else {at: count})


def _complex_1d(input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    if input.dtype.is_complex:
        plan = _only_dim(input, n, dim)
        result: Tensor = complex_to_complex.apply(
            resized(input, plan.points),
            dims=plan.dims,
            normalization=_normalization(norm, forward),
            forward=forward,
        )
        return result
    return _real_1d(input, n, dim, norm, forward, onesided=False)


def _real_1d(
    input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool, onesided: bool
) -> Tensor:
    input = _floating(input)
    plan = _only_dim(input, n, dim)
    result: Tensor = real_to_complex.apply(
        resized(input, plan.points),
        dims=plan.dims,
        normalization=_normalization(norm, forward),
        onesided=onesided,
    )
    return result if forward else conj(result)


def _to_real_1d(input: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    input = _floating(input, complex=True)
    shape = input._array.shape
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, len(shape))
    count = 2 * (shape[at] - 1) if n is None else n
    _check_points(count)
    if n is not None:
        input = resized(input, {at: count // 2 + 1})
    result: Tensor = complex_to_real.apply(
        conj(input) if forward else input,
        dims=(at,),
        normalization=_normalization(norm, forward),
        last_size=count,
    )
    return result


# --- along several dims ---------------------------------------------------------------------------


def _several(input: Tensor, s: Sequence[int] | None, dim: Sequence[int] | None) -> _Plan:
    shape = input._array.shape
    ndim = len(shape)
    dims: tuple[int, ...]
    if dim is not None:
        if dim and not ndim:
            raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
        dims = tuple([wrap_dim(each, ndim) for each in dim])
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
    elif s is not None and len(s) <= ndim:
        dims = tuple(range(ndim - len(s), ndim))
    else:
        dims = tuple(range(ndim))
    if s is None:
        sizes = {each: shape[each] for each in dims}
    else:
        if dim is not None and len(dim) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > ndim:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions."
            )
        sizes = {
            each: shape[each] if size == -1 else size for each, size in zip(dims, s, strict=True)
        }
    for size in sizes.values():
        _check_points(size)
    return _Plan(dims, sizes)


def _check_some(name: str, plan: _Plan) -> None:
    if not plan.dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def _complex_nd(input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    plan = _several(input, s, dim)
    result: Tensor = complex_to_complex.apply(
        resized(_floating(input, complex=True), plan.points),
        dims=plan.dims,
        normalization=_normalization(norm, forward),
        forward=forward,
    )
    return result


def _half_nd(name: str, input: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """Transform the real input of a forward transform to the half that is needed."""
    if input.dtype.is_complex:
        raise RuntimeError(
            f"{name} expects a real-valued input tensor, but got {input.dtype.scalar_name}"
        )
    plan = _several(input, s, dim)
    _check_some(name, plan)
    result: Tensor = real_to_complex.apply(
        resized(_floating(input), plan.points),
        dims=plan.dims,
        normalization=_normalization(norm, True),
        onesided=True,
    )
    return result


def _inverse_half_nd(name: str, input: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    """Transform real input backwards to the half that is needed: first along the last dim."""
    plan = _several(input, s, dim)
    _check_some(name, plan)
    if input.dtype.is_complex:
        raise RuntimeError(
            f"Only supports floating-point dtypes, but found: {input.dtype.scalar_name}"
        )
    normalization = _normalization(norm, False)
    half = real_to_complex.apply(
        resized(_floating(input), plan.points),
        dims=plan.dims[-1:],
        normalization=normalization,
        onesided=True,
    )
    if len(plan.dims) == 1:
        return conj(half)
    result: Tensor = complex_to_complex.apply(
        conj_physical(half), dims=plan.dims[:-1], normalization=normalization, forward=False
    )
    return result


def _to_real_nd(
    name: str, input: Tensor, s: Any, dim: Any, norm: str | None, forward: bool
) -> Tensor:
    plan = _several(input, s, dim)
    _check_some(name, plan)
    last = plan.dims[-1]
    count = plan.points[last]
    if s is None or s[-1] == -1:
        count = 2 * (input._array.shape[last] - 1)
        _check_points(count)
    normalization = _normalization(norm, forward)
    input = resized(_floating(input, complex=True), {**plan.points, last: count // 2 + 1})
    dims = plan.dims
    if forward:  # the last step takes the conjugate, and so there is one step for it alone
        if len(dims) > 1:
            input = complex_to_complex.apply(
                input, dims=dims[:-1], normalization=normalization, forward=True
            )
        input, dims = conj(input), dims[-1:]
    result: Tensor = complex_to_real.apply(
        input, dims=dims, normalization=normalization, last_size=count
    )
    return result


# --- the functions --------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """What goes in and comes out of a family of transforms, and what says so."""

    one: Callable[[Tensor, Any, Any, Any], Tensor]
    many: Callable[[str, Tensor, Any, Any, Any], Tensor]
    takes_complex: bool
    gives_complex: bool
    doc: str
    derivative: str


_KINDS = {
    "fft": _Kind(
        lambda input, n, dim, norm: _complex_1d(input, n, dim, norm, True),
        lambda name, input, s, dim, norm: _complex_nd(input, s, dim, norm, True),
        True,
        True,
        "Return the discrete Fourier transform: y_k is the sum of x_j exp(-2 pi i jk/n).",
        "the adjoint transform of g, and of real input its real part",
    ),
    "ifft": _Kind(
        lambda input, n, dim, norm: _complex_1d(input, n, dim, norm, False),
        lambda name, input, s, dim, norm: _complex_nd(input, s, dim, norm, False),
        True,
        True,
        "Return the inverse transform: y_j is the mean of x_k exp(2 pi i jk/n).",
        "the adjoint transform of g, and of real input its real part",
    ),
    "rfft": _Kind(
        lambda input, n, dim, norm: _real_1d(input, n, dim, norm, True, onesided=True),
        _half_nd,
        False,
        True,
        "Return the transform of real input: the half up to n // 2, which says all, in the last "
        "dim.",
        "the real part of the adjoint transform of g, whose missing half is 0",
    ),
    "irfft": _Kind(
        lambda input, n, dim, norm: _to_real_1d(input, n, dim, norm, False),
        lambda name, input, s, dim, norm: _to_real_nd(name, input, s, dim, norm, False),
        True,
        False,
        "Return the real numbers of which the input is the half spectrum; the inverse of `rfft`.",
        "the half of the adjoint transform of g, twice where an element stands for two",
    ),
    "hfft": _Kind(
        lambda input, n, dim, norm: _to_real_1d(input, n, dim, norm, True),
        lambda name, input, s, dim, norm: _to_real_nd(name, input, s, dim, norm, True),
        True,
        False,
        "Return the real spectrum of a signal of which the input is the Hermitian half.",
        "the half of the adjoint transform of g, twice where an element stands for two",
    ),
    "ihfft": _Kind(
        lambda input, n, dim, norm: _real_1d(input, n, dim, norm, False, onesided=True),
        _inverse_half_nd,
        False,
        True,
        "Return the Hermitian half of the signal whose spectrum is real; the inverse of `hfft`.",
        "the real part of the adjoint transform of g, whose missing half is 0",
    ),
}
_DOC = """{what}{along}

    The gradient is {derivative}.
    Mirrors ``torch.fft.{name}``. Source: J. W. Cooley and J. W. Tukey, "An algorithm for the
    machine calculation of complex Fourier series" (1965).

    Parameters
    ----------
    input
        {taken} numbers; float32 and complex64 stay, integers become floating point.
    {sizes}
    norm
        ``"backward"``, if none is given: the inverse is divided by the number of points;
        ``"forward"``: the forward transform is; ``"ortho"``: both, by the square root.

    Raises
    ------
    IndexError
        If there is no such dim.
    RuntimeError
        If the input or `out` is of a dtype that is not taken, there are no points, a dim is named
        twice, or there is no such `norm`.

    >>> import numgrad as ng
    >>> ng.fft.{name}({ones}).abs()
    {result}
"""
_ONE = """n
        How many points: the input is cut, or zeros are added.{half}
    dim
        Along which dim."""
_SEVERAL = """s
        How many points in each dim: the input is cut, or zeros are added; -1 leaves a dim as it
        is.{half}
    dim
        Along which dims; {default}."""
_HALF = """ Unless it is given, the
        result has twice the length of the input but for two."""
_LAST = "all of them, or the last ones of which `s` has lengths, unless given"


def _result(name: str, shape: tuple[int, ...]) -> str:
    """Return how the spectrum of ones prints: all of it is in the first element."""
    if name.startswith(("ifft", "irfft", "ihfft")):
        return "tensor([[1., 0.],\n            [0., 0.]])" if len(shape) > 1 else "tensor([1., 0.])"
    return "tensor([[4., 0.],\n            [0., 0.]])" if len(shape) > 1 else "tensor([2., 0.])"


def _doc(name: str, kind: _Kind, sizes: str, along: str, shape: tuple[int, ...]) -> str:
    return _DOC.format(
        what=kind.doc,
        along=along,
        derivative=kind.derivative,
        name=name,
        taken="Real or complex" if kind.takes_complex else "Real",
        sizes=sizes.replace("{half}", "" if kind.gives_complex else _HALF),
        ones=f"ng.ones{shape if len(shape) > 1 else '(2)'}",
        result=_result(name, shape),
    )


def _check_out(name: str, kind: _Kind, out: Tensor | None) -> None:
    if out is not None and out.dtype.is_complex is not kind.gives_complex:
        sort = "complex" if kind.gives_complex else "floating point"
        raise RuntimeError(
            f"{name} expects a {sort} output tensor, but got {out.dtype.scalar_name}"
        )


def _enter(name: str, signature: str, rule: Callable[..., Any], doc: str) -> None:
    rule.__name__ = rule.__qualname__ = f"fft_{name}"
    rule.__doc__ = doc
    declared = declare(
        f"fft_{name}({signature}, str? norm=None, *, Tensor? out=None)",
        function=False,
        method=False,
        dispatched=True,
    )
    TRANSFORMS[name] = globals()[f"fft_{name}"] = declared(rule)  # pickles find it here


def _declare_one(name: str, kind: _Kind) -> None:
    def rule(
        input: Tensor, n: int | None, dim: int, norm: str | None, out: Tensor | None
    ) -> Tensor:
        if not kind.takes_complex and input.dtype.is_complex:
            raise RuntimeError(
                f"{name} expects a real input tensor, but got {input.dtype.scalar_name}"
            )
        _check_out(name, kind, out)
        result: Tensor = write_result(f"fft_{name}", kind.one(input, n, dim, norm), out)
        return result

    _enter(name, "Tensor input, int? n=None, int dim=-1", rule, _doc(name, kind, _ONE, "", (2,)))


def _declare_several(name: str, kind: _Kind, dims: str, default: str, along: str) -> None:
    said = name.replace("2", "n")  # in messages, by PyTorch too

    def rule(input: Tensor, s: Any, dim: Any, norm: str | None, out: Tensor | None) -> Tensor:
        _check_out(said, kind, out)
        result: Tensor = write_result(f"fft_{name}", kind.many(said, input, s, dim, norm), out)
        return result

    sizes = _SEVERAL.replace("{default}", default)
    signature = f"Tensor input, int[1]? s=None, {dims}"
    _enter(name, signature, rule, _doc(name, kind, sizes, along, (2, 2)))


for _name, _kind in _KINDS.items():
    _declare_one(_name, _kind)
    _declare_several(
        f"{_name}2", _kind, "int[1] dim=(-2, -1)", "the last two unless given", " In two dims."
    )
    _declare_several(f"{_name}n", _kind, "int[1]? dim=None", _LAST, " In many dims.")
