"""Random programs on tensors, as Python source: what hypothesis draws, shrinks and prints.

A program is written line by line, and every line is run as it is written, so that the next one
knows the shapes and dtypes of the variables. A line that raises is dropped.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

import numgrad as ng
from numgrad.autograd import grad
from numgrad.graph.tensor import Tensor

__all__ = ["ELEMENTWISE", "EVERYTHING", "Program", "programs"]

Line = Callable[["Writer"], "str | None"]

_SHAPES = [(), (1,), (2,), (3,), (4,), (1, 3), (2, 1), (2, 3), (3, 2), (2, 2), (4, 6), (1, 1)]
_SHAPES += [(2, 3, 2), (2, 1, 3), (3, 3), (0,), (0, 2), (2, 0)]
_SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-310, 2.0, -3.0]
_LARGEST = 1e4
_MOST_ELEMENTS = 200


class Program:
    """A function of tensors, and arguments for it."""

    def __init__(self, lines: list[str], names: list[str], results: list[str], given: Any) -> None:
        head = f"def program({', '.join(names)}):"
        body = [*lines, f"return {', '.join(results)},"]
        text = [head, *("    " + part for line in body for part in line.split("\n"))]
        self.source = "\n".join(text) + "\n"
        self.names = names
        self.given = given

    def __repr__(self) -> str:
        arguments = [f"{name} = {_show(self.given[name])}" for name in self.names]
        return "\n" + self.source + "\n".join(arguments) + "\n"

    @property
    def function(self) -> Callable[..., Any]:
        """The function."""
        filename = f"program_{abs(hash(self.source))}.py"
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(True), filename)
        namespace = {"ng": ng, "grad": grad}
        exec(compile(self.source, filename, "exec"), namespace)
        return namespace["program"]  # type: ignore[return-value]

    def arguments(self) -> list[Any]:
        """Return tensors with the arguments; those that can require grad."""
        return [_tensor(self.given[name]) for name in self.names]


def _tensor(array: np.ndarray) -> Any:
    tensor = ng.from_numpy(array.copy())
    return tensor.requires_grad_() if array.dtype.kind in "fc" else tensor


def _show(array: np.ndarray) -> str:
    shape = "" if array.size else f".reshape({array.shape})"
    return f"ng.tensor({array.tolist()!r}, dtype=ng.{array.dtype.name}){shape}"


class Writer:
    """A program while it is written."""

    def __init__(self, draw: st.DrawFn, given: dict[str, np.ndarray]) -> None:
        self.draw = draw
        self.inputs = {name: _tensor(array) for name, array in given.items()}
        self.known: dict[str, Any] = dict(self.inputs)
        self.lines: list[str] = []

    # --- choices ---

    def among(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(list(choices)))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def name(self, accept: Callable[[Any], bool] = lambda tensor: True) -> str | None:
        """Choose a variable, the latest first."""
        names = [name for name, tensor in self.known.items() if accept(tensor)]
        return self.among(reversed(names)) if names else None

    def floating(self) -> str | None:
        return self.name(lambda t: t.dtype.is_floating_point)

    def dim(self, tensor: Any) -> int:
        return self.number(-tensor.ndim, tensor.ndim - 1) if tensor.ndim else 0

    def local(self) -> str | None:
        """Choose a variable that may be written to."""
        given = [t._array for t in self.inputs.values()]
        return self.name(
            lambda t: (
                t.numel()
                and 0 not in t.stride()
                and not any(np.shares_memory(t._array, a) for a in given)
            )
        )

    # --- lines ---

    def write(self, line: Line) -> None:
        """Add a line, if one comes of it that runs."""
        text = line(self)
        if text is None:
            return
        is_new = text.startswith("=")
        name = f"v{len(self.known) - len(self.inputs)}"
        if is_new:
            text = f"{name} {text}"
        if self.number(0, 15) == 0:
            text = f"with ng.no_grad():\n    {text}"
        before = {name: t._array.copy() for name, t in self.known.items()}
        namespace = {"ng": ng, "grad": grad, **self.known}
        try:
            exec(text, namespace)
            if is_new and not self.fits(namespace[name]):
                return
            if not is_new and not all(map(self.fits, self.known.values())):
                raise ValueError("numbers grow too large")
        except (RuntimeError, IndexError, ValueError, TypeError, AttributeError):
            for name, array in before.items():
                if array.tobytes() != self.known[name]._array.tobytes():  # written to, then failed
                    self.known[name] = None
            self.known = {name: t for name, t in self.known.items() if t is not None}
            self.failed = not is_new  # it may have written a part
            return
        self.lines.append(text)
        if is_new:
            self.known[name] = namespace[name]

    failed = False

    def fits(self, value: Any) -> bool:
        if not isinstance(value, Tensor) or value.numel() > _MOST_ELEMENTS:
            return False
        array = np.abs(value._array[np.isfinite(value._array)]).astype(float)
        return not array.size or bool(array.max() < _LARGEST)


# --- views ----------------------------------------------------------------------------------------


def _slice(w: Writer, length: int) -> str:
    start, stop, step = w.number(-length, length), w.number(-length, length), w.number(1, 3)
    parts = [w.among(["", str(start)]), w.among(["", str(stop)])]
    return ":".join([*parts, str(step)] if step > 1 else parts)


def _key(w: Writer, tensor: Any) -> str:
    keys = []
    for length in tensor.shape[: w.number(0, tensor.ndim)]:
        kind = w.among(["slice", "slice", "all", "int", "none"])
        if kind == "none":
            keys.append("None")
        elif kind == "int" and length:
            keys.append(str(w.number(-length, length - 1)))
        else:
            keys.append(":" if kind == "all" else _slice(w, length))
    return ", ".join(keys) or "..."


def _factorisations(size: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [(size,), (1, size), (size, 1)]
    for a in range(2, size + 1):
        if size % a == 0:
            found += [(a, size // a), (a, -1)]
    if size == 1:
        found.append(())
    return found + [
        (a, b, size // (a * b)) for a, b in ((2, 2), (2, 3), (3, 2)) if size % (a * b) == 0
    ]


_VIEWS = ["key", "key", "transpose", "permute", "flip", "expand", "reshape", "view", "diagonal"]
_VIEWS += ["unsqueeze", "squeeze", "narrow", "chunk", "unbind", "select", "T", "roll", "detach"]
_VIEWS += ["movedim", "unfold", "flatten", "swap", "split", "as_strided", "real", "complex"]


def _view(w: Writer) -> str | None:
    name = w.name()
    t = w.known[name]
    d, e = w.dim(t), w.dim(t)
    n = t.shape[d] if t.ndim else 0
    view = w.among(_VIEWS)
    if view == "key":
        return f"= {name}[{_key(w, t)}]"
    if view == "transpose":
        return f"= {name}.transpose({d}, {e})"
    if view == "permute":
        return f"= {name}.permute({tuple(w.draw(st.permutations(range(t.ndim))))})"
    if view == "flip":
        return f"= {name}.flip({w.among([d, e])})"
    if view == "expand":
        return f"= {name}.expand({w.among(['2, ', '1, ', ''])}{_star(w, t)})"
    if view in ("reshape", "view"):
        return f"= {name}.{view}({w.among(_factorisations(t.numel()))})"
    if view == "diagonal":
        return f"= {name}.diagonal({w.number(-1, 1)}, {d}, {e})"
    if view == "unsqueeze":
        return f"= {name}.unsqueeze({w.number(-1, t.ndim)})"
    if view == "narrow":
        return f"= {name}.narrow({d}, {w.number(0, 1)}, {w.number(0, 2)})"
    if view == "chunk":
        return f"= {name}.chunk({w.number(1, 3)}, {d})[{w.number(-1, 1)}]"
    if view == "split":
        return f"= {name}.split({w.number(1, 2)}, {d})[{w.number(-1, 1)}]"
    if view == "unbind":
        return f"= {name}.unbind({d})[{w.number(-1, 0)}]"
    if view == "select":
        return f"= {name}.select({d}, {w.number(0, max(n - 1, 0))})"
    if view == "movedim":
        return f"= {name}.movedim({d}, {e})"
    if view == "roll":
        return f"= {name}.roll({w.number(-2, 2)}, {d})"
    if view == "unfold":
        return f"= {name}.unfold({d}, {w.number(1, 2)}, {w.number(1, 2)})"
    if view == "as_strided":
        return (
            f"= {name}.as_strided(({w.number(0, 2)}, 2), ({w.number(0, 2)}, 1), {w.number(0, 1)})"
        )
    if view == "swap":
        return f"= {name}.flatten().unflatten(0, ({w.number(1, 2)}, -1)).T"
    if view == "real":
        return f"= {name}.{w.among(['real', 'imag'])}"
    if view == "complex":
        return f"= ng.view_as_{'real' if t.dtype.is_complex else 'complex'}({name})"
    return f"= {name}.{view}" + ("" if view == "T" else "()")


def _star(w: Writer, t: Any) -> str:
    return ", ".join(str(w.number(0, 3) if n == 1 else n) for n in t.shape)


# --- elementwise ----------------------------------------------------------------------------------

_UNARY = ["sin", "cos", "tanh", "exp", "sigmoid", "abs", "neg", "square", "relu", "sign", "floor"]
_UNARY += ["round", "sqrt", "log", "reciprocal", "isnan", "logical_not", "rsqrt", "clone", "expm1"]
_UNARY += ["erf", "log1p", "trunc", "frac", "conj", "sgn", "angle", "signbit", "isfinite"]
_BINARY = ["add", "sub", "mul", "mul", "div", "maximum", "minimum", "atan2", "fmax", "copysign"]
_BINARY += ["remainder", "floor_divide", "hypot", "fmod", "logaddexp", "xlogy", "heaviside"]
_BINARY += ["eq", "lt", "ge", "ne", "logical_and", "logical_or", "bitwise_and", "bitwise_xor"]
_BINARY += ["bitwise_left_shift", "bitwise_right_shift"]
_NUMBERS = ["2", "-1", "0", "0.5", "1.0", "-0.25", "3", "True", "0.0", "1e-3", "(1 + 2j)"]
_DTYPES = ["float32", "float64", "int64", "int32", "bool", "complex128", "complex64", "uint8"]


def _operand(w: Writer) -> str:
    return w.among([w.name(), w.name(), w.among(_NUMBERS)])


def _unary(w: Writer) -> str:
    return f"= {w.name()}.{w.among(_UNARY)}()"


def _binary(w: Writer) -> str:
    sign = w.among(["+", "-", "*", "/", "**", "//", "%", "<", ">=", "==", "&", "|", "f"])
    if sign == "f":
        return f"= ng.{w.among(_BINARY)}({w.name()}, {_operand(w)})"
    left, right = w.name(), _operand(w)
    if w.number(0, 3) == 0:
        left, right = right, left
    return f"= {left} {sign} {right}"


def _ternary(w: Writer) -> str:
    a, b, c = w.name(), _operand(w), _operand(w)
    mask = w.name(lambda t: t.dtype is ng.bool) or f"({a} > 0.3)"
    return w.among(
        [
            f"= ng.where({mask}, {b}, {c})",
            f"= ng.where({w.name()} < {w.name()}, {w.name()}, {b})",
            f"= {a}.clamp({w.among(['-0.5', '0', 'None'])}, {w.among(['0.5', '1', 'None'])})",
            f"= {a}.clamp(min={w.name()})",
            f"= {a}.masked_fill({mask}, {w.among(_NUMBERS)})",
            f"= {a}.lerp({w.name()}, {w.among(['0.25', w.name()])})",
            f"= {a}.addcmul({w.name()}, {w.name()}, value=0.5)",
            f"= {a}.nan_to_num(0.5)",
            f"= ng.complex({a}, {w.name()})",
        ]
    )


def _cast(w: Writer) -> str:
    return f"= {w.name()}.to(ng.{w.among(_DTYPES)})"


def _creation(w: Writer) -> str:
    a = w.name()
    return w.among(
        [
            f"= ng.zeros_like({a})",
            f"= ng.full_like({a}, {w.among(_NUMBERS)})",
            f"= {a}.new_ones({w.among(_SHAPES)})",
            f"= ng.arange({w.number(0, 4)})",
            f"= ng.arange({w.number(0, 3)}, dtype=ng.float64) / 2",
            f"= ng.eye({w.number(1, 3)}, dtype=ng.float64)",
            "= ng.tensor([0.5, -1.5, 2.0])",
            "= ng.tensor(1.5, dtype=ng.float64, requires_grad=True)",
            f"= ng.linspace(-1, 1, {w.number(1, 4)}, dtype=ng.float64)",
            f"= ng.zeros({w.among(_SHAPES)}, dtype=ng.float64)",
        ]
    )


# --- writes ---------------------------------------------------------------------------------------


def _write(w: Writer) -> str | None:
    name = w.local()
    if name is None:
        return f"= {w.name()}.clone()"
    t = w.known[name]
    value = _operand(w)
    target = w.among([name, name, f"{name}[{_key(w, t)}]"])
    return w.among(
        [
            f"{name}[{_key(w, t)}] = {value}",
            f"{name}[{_key(w, t)}] = {value}",
            f"{name}[{_key(w, t)}] {w.among(['+', '*', '-', '/'])}= {value}",
            f"{name} {w.among(['+', '*', '-', '/'])}= {value}",
            f"{name}[{name} > 0.25] = {w.among(_NUMBERS)}",
            f"{name}[{w.name(lambda t: t.dtype is ng.bool)}] = {w.among(_NUMBERS)}",
            f"{target}.{w.among(['add', 'mul', 'sub', 'copy', 'maximum', 'div'])}_({w.name()})",
            f"{target}.{w.among(['sin', 'tanh', 'neg', 'relu', 'square', 'zero', 'exp'])}_()",
            f"{target}.clamp_(-0.5, {w.among(['0.5', 'None'])})",
            f"{target}.fill_({w.among(_NUMBERS)})",
            f"{target}.fill_({w.name(lambda t: t.ndim == 0) or 0.5})",
            f"{target}.masked_fill_({w.name()} < 0.3, {w.among(_NUMBERS)})",
            f"{target}.lerp_({w.name()}, 0.25)",
            f"{target}.addcmul_({w.name()}, {w.name()}, value=0.5)",
            f"{name}.transpose({w.dim(t)}, {w.dim(t)}).copy_({w.name()})",
            f"{name}.diagonal().{w.among(['add_', 'copy_', 'fill_'])}({value})",
            f"{name}.T[0] = {value}",
            f"{name}.view(-1)[::2] = {value}",
            f"{name}.detach()[{_key(w, t)}] = {value}",
            f"ng.{w.among(['sin', 'neg', 'exp'])}({w.name()}, out={name})",
        ]
    )


# --- the rest -------------------------------------------------------------------------------------


def _dims(w: Writer, t: Any) -> str:
    dims = w.draw(st.sets(st.integers(0, t.ndim - 1), max_size=t.ndim)) if t.ndim else set()
    return w.among([f"{tuple(dims)}", str(w.dim(t))])


_REDUCTIONS = ["sum", "sum", "mean", "amax", "amin", "var", "std", "logsumexp", "all", "any"]
_REDUCTIONS += ["nansum", "norm"]
_ALONG = ["softmax", "log_softmax", "cumsum", "cumprod", "argmax", "argmin", "prod", "logcumsumexp"]
_PAIRS = ["sort", "max", "min", "cummax"]


def _reduction(w: Writer) -> str:
    name = w.name()
    t = w.known[name]
    keep = w.among(["", ", keepdim=True"])
    return w.among(
        [
            f"= {name}.{w.among(_REDUCTIONS)}({_dims(w, t)}{keep})",
            f"= {name}.{w.among(_REDUCTIONS)}({_dims(w, t)}{keep})",
            f"= {name}.{w.among(['sum', 'mean', 'max', 'min', 'prod', 'argmax', 'any', 'var'])}()",
            f"= {name}.{w.among(_ALONG)}({w.dim(t)})",
            f"= {name}.{w.among(_PAIRS)}({w.dim(t)})[{w.number(0, 1)}]",
            f"= {name}.topk({w.number(0, 2)}, {w.dim(t)})[{w.number(0, 1)}]",
            f"= {name}.count_nonzero({w.dim(t)})",
            f"= {name}.{w.among(['argsort', 'msort'])}()",
        ]
    )


def _joining(w: Writer) -> str:
    a, b = w.name(), w.name()
    t = w.known[a]
    return w.among(
        [
            f"= ng.cat([{a}, {b}], {w.dim(t)})",
            f"= ng.cat([{a}, {a}, {b}], {w.dim(t)})",
            f"= ng.stack([{a}, {b}], {w.dim(t)})",
            f"= ng.stack([{a}, {a}])",
            f"= ng.hstack([{a}, {b}])",
            f"= {a}.repeat({', '.join([str(w.number(1, 2))] * max(t.ndim, 1))})",
            f"= ng.tril({a}, {w.number(-1, 1)})",
            f"= ng.diag({a}, {w.number(-1, 1)})",
            f"= {a}.repeat_interleave({w.number(1, 2)}, {w.dim(t)})",
            f"= ng.meshgrid({a}, {b}, indexing='ij')[{w.number(0, 1)}]",
        ]
    )


def _indexing(w: Writer) -> str:
    name = w.name()
    t = w.known[name]
    d = w.dim(t)
    n = t.shape[d] if t.ndim else 1
    index = [w.number(-n, n - 1) if n else 0 for _ in range(w.number(0, 3))]
    positive = [k % n if n else 0 for k in index]
    of_ints = w.name(lambda t: t.dtype is ng.int64 and t.ndim)
    choices = [
        f"= {name}[{index}]",
        f"= {name}[..., {index}]",
        f"= {name}[ng.tensor({index}, dtype=ng.int64)]",
        f"= {name}.index_select({d}, ng.tensor({positive}, dtype=ng.int64))",
        f"= {name}.gather({d}, {name}.argsort({d}))",
        f"= {name}.take(ng.tensor({positive}, dtype=ng.int64))",
        f"= {name}[{of_ints}]",
        f"= {name}[{index}, {index}]",
    ]
    target = w.local()
    if target is not None:
        choices += [
            f"{target}[{index}] = {_operand(w)}",
            f"{target}[..., {index}] {w.among(['', '+', '*'])}= {_operand(w)}",
            f"{target}.index_add_({d}, ng.tensor({positive}, dtype=ng.int64), {w.name()})",
            f"{target}.scatter_({d}, {w.name(lambda t: t.dtype is ng.int64)}, {w.name()})",
            f"{target}[{of_ints}] = {_operand(w)}",
        ]
    return w.among(choices)


def _product(w: Writer) -> str:
    a, b = w.name(lambda t: t.ndim), w.name(lambda t: t.ndim)
    if a is None:
        return None
    if w.known[a].ndim == 2 and w.number(0, 1):
        b = w.among([f"{a}.T", b])
    return w.among(
        [
            f"= {a} @ {b}",
            f"= ng.einsum('ij,kj->ik', {a}, {b})",
            f"= ng.einsum('i...,i...->...', {a}, {b})",
            f"= ng.einsum('ij,jk->', {a}, {b})",
            f"= ng.einsum('i,j->ij', {a}, {b})",
            f"= ng.einsum('ii->i', {a})",
            f"= ng.outer({a}, {b})",
            f"= ng.kron({a}, {b})",
            f"= ng.dot({a}, {b})",
            f"= ng.tensordot({a}, {b}, 1)",
            f"= {a}.T @ {b}",
        ]
    )


def _gradient(w: Writer) -> str | None:
    result = w.name(lambda t: t.requires_grad and t.dtype.is_floating_point)
    moving = [n for n, t in w.known.items() if t.requires_grad and not t.dtype.is_complex]
    if result is None or not moving:
        return None
    toward = w.among(moving)
    create = w.among(["True", "True", "False"])
    of = w.among([f"{result}.sum()", f"({result} * {result}).sum()"])
    return f"= grad({of}, {toward}, create_graph={create}, materialize_grads=True)[0]"


def _own_leaf(w: Writer) -> str | None:
    name = w.floating()
    return None if name is None else f"= {name}.detach().clone().requires_grad_()"


ELEMENTWISE: list[Line] = [_view, _view, _write, _write, _write, _unary, _binary, _binary]
ELEMENTWISE += [_ternary, _cast, _creation]
EVERYTHING: list[Line] = [*ELEMENTWISE, _reduction, _reduction, _joining, _indexing, _product]
EVERYTHING += [_gradient, _own_leaf]


@st.composite
def programs(
    draw: st.DrawFn, lines: list[Line], *, longest: int = 7, special: bool = False
) -> Program:
    """Draw a program of some kinds of lines.

    Parameters
    ----------
    special : bool
        Whether the arguments have -0.0, inf, nan and the like.
    """
    shape = draw(st.sampled_from(_SHAPES))
    other = tuple(n if draw(st.booleans()) else 1 for n in shape)[draw(st.integers(0, 1)) :]
    types = {"x": ("float64", shape), "y": (draw(st.sampled_from(["float64", "float32"])), other)}
    if draw(st.integers(0, 2)) == 0:
        types["k"] = ("int64", draw(st.sampled_from([shape, (2,), ()])))
    if draw(st.integers(0, 3)) == 0:
        types["m"] = ("bool", draw(st.sampled_from([shape, other])))
    if draw(st.integers(0, 5)) == 0:
        types["z"] = ("complex128", shape)
    random = np.random.default_rng(draw(st.integers(0, 99)))
    given = {name: _draw_array(random, *type_, special) for name, type_ in types.items()}
    writer = Writer(draw, given)
    with np.errstate(all="ignore"):
        for line in draw(st.lists(st.sampled_from(lines), min_size=1, max_size=longest)):
            if writer.failed:
                break
            writer.write(line)
    made = [name for name in writer.known if name not in writer.inputs]
    results = made[-4:] or ["x"]
    return Program(writer.lines, list(given), results, given)


def _draw_array(
    random: np.random.Generator, dtype: str, shape: tuple[int, ...], special: bool
) -> np.ndarray:
    size = prod(shape)
    if dtype == "int64":
        numbers = random.integers(0, 2, size)
    elif dtype == "bool":
        numbers = random.random(size) < 0.5
    else:
        numbers = random.integers(-16, 17, size) / 8
        if special:
            numbers = np.where(random.random(size) < 0.6, numbers, random.choice(_SPECIAL, size))
        if dtype == "complex128":
            numbers = numbers + 1j * random.integers(-8, 9, size) / 4
    return np.asarray(numbers).astype(dtype).reshape(shape)
