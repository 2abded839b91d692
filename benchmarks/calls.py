"""From an entry of the catalogue to a call at a wanted size.

Elementwise operations get operands from their domains. Other operations bring samples, calls on
tensors of a few elements. Enlarging one is a search: their shapes, and the lengths and sizes among
the arguments, are stretched in several ways, and the first that the operation accepts and that
makes it handle more elements is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import numgrad as ng
from numgrad.ops.core.domains import Domain
from numgrad.ops.core.elementwise.primitive import ElementwisePrimitive
from numgrad.ops.core.primitive import CATALOGUE
from numgrad.ops.core.registry import FUNCTIONS
from numgrad.ops.later import LATER, load_file

__all__ = ["Call", "make_call", "names"]

PERIOD = 10_000  # operands repeat themselves after this many elements, which makes them quickly
# Measures come from the catalogue. Of packages with a family of their own the samples have sizes
# and positions written into them that fit no other operand.
for _place in LATER:
    if "." in _place:
        load_file(_place)

REFUSALS = (RuntimeError, ValueError, IndexError, TypeError)
Stretch = Callable[[tuple[int, ...], float], tuple[int, ...]]

# Parts of other operations, mostly of their gradients, and measured with them: no public function
# does just what they do, or the samples have positions and sizes written into them that fit no
# other operand.
PARTS = frozenset(
    (
        "alias",
        "as_strided_backward",
        "conj_physical_in_place",
        "corner",
        "diagonal_backward",
        "fill_number_in_place",
        "fill_tensor_in_place",
        "gather_backward",
        "index_backward",
        "linear_recurrence",
        "log_softmax_backward",
        "logsumexp_backward",
        "masked_scatter_backward",
        "masked_select_backward",
        "pad_behind",
        "place_along",
        "select_backward",
        "shift",
        "slice",
        "slice_backward",
        "softmax_backward",
        "spread",
        "take_backward",
        "threshold_backward",
        "unsafe_view",
    )
)


@dataclass(frozen=True)
class Call:
    """A function and its arguments.

    Attributes
    ----------
    function : callable
        What is called.
    operands : list
        Its positional arguments: tensors, and numbers where the operation takes them.
    keywords : dict
        Its other arguments.
    """

    function: Callable[..., Any]
    operands: list[Any]
    keywords: dict[str, Any]

    def forward(self) -> Any:
        """Make the call."""
        return self.function(*self.operands, **self.keywords)

    def with_cotangents(self) -> Callable[[], None]:
        """Return a function that makes the call and runs back from its results."""
        leaves = [operand for operand in self.operands if isinstance(operand, ng.Tensor)]
        roots: list[int] = []
        cotangents: list[Any] = []

        def forward_and_backward() -> None:
            for leaf in leaves:
                leaf.grad = None
            result = self.forward()
            if not roots:  # only now is it known what the results are
                found = self._roots(result)
                roots.extend(found[0])
                cotangents.extend(found[1])
            if type(result) is ng.Tensor:
                result.backward(cotangents[0])
            else:
                ng.autograd.backward([result[position] for position in roots], cotangents)

        return forward_and_backward

    @staticmethod
    def _roots(result: Any) -> tuple[list[int], list[Any]]:
        """Return which results require grad, and ones in their shapes."""
        results = [result] if type(result) is ng.Tensor else list(result)
        roots = [position for position, y in enumerate(results) if y.requires_grad]
        return roots, [ng.ones_like(results[position].detach()) for position in roots]

    def elements(self) -> int:
        """Return the elements of the largest operand or result."""
        result = self.forward()
        tensors = [result] if isinstance(result, ng.Tensor) else list(result)
        tensors += [operand for operand in self.operands if isinstance(operand, ng.Tensor)]
        return max(tensor.numel() for tensor in tensors)


def is_elementwise(name: str) -> bool:
    """Whether an entry of the catalogue is an elementwise operation."""
    return isinstance(CATALOGUE[name], ElementwisePrimitive)


def differentiable(name: str) -> bool:
    """Whether an entry of the catalogue has a rule."""
    return any(rule is not None for rule in CATALOGUE[name].rules)


def make_call(name: str, elements: int, *, requires_grad: bool) -> Call:
    """Return a call of the operation at about this many elements.

    Raises
    ------
    NotImplementedError
        If the operation's samples can't be brought to this size; asv shows n/a for it.
    """
    if is_elementwise(name):
        return _elementwise_call(CATALOGUE[name], elements, requires_grad)
    return _enlarged_call(name, elements, requires_grad)


# --- elementwise operations ----------------------------------------------------------------------


def _elementwise_call(primitive: ElementwisePrimitive, elements: int, requires_grad: bool) -> Call:
    kind = next(kind for kind in "fibc" if kind in primitive.accepts)
    dtype = {"f": np.float32, "i": np.int32, "b": np.bool_, "c": np.complex64}[kind]
    random = np.random.default_rng(0)
    operands: list[Any] = []
    first: np.ndarray | None = None
    for position, domain in enumerate(primitive.domains):
        if domain.is_number:
            operands.append(domain.intervals[0][0])
            continue
        array = _draw(domain, min(elements, PERIOD), random)
        if domain.apart and first is not None:
            array = first + domain.apart + np.abs(array)
        if first is None:
            first = array
        if domain.is_mask:
            array = array > array.mean()
        else:
            array = array.astype(dtype)
        tensor = ng.from_numpy(np.resize(array, elements))
        if requires_grad and kind in "fc" and primitive.rules[position] is not None:
            tensor.requires_grad_()
        operands.append(tensor)
    few = [_two_elements(operand) for operand in operands]
    for tensor, rule in zip(few, primitive.rules, strict=True):
        if rule is not None and isinstance(tensor, ng.Tensor) and tensor.is_floating_point():
            tensor.requires_grad_()
    function, arrange = _public(primitive, Call(primitive, few, {}))
    return Call(function, *arrange(operands, {}))


def _draw(domain: Domain, count: int, random: np.random.Generator) -> np.ndarray:
    """Return numbers from all intervals of a domain."""
    intervals = np.array(domain.intervals)
    low, high = intervals[random.integers(len(intervals), size=count)].T
    return np.asarray(low + random.random(count) * (high - low))


def _two_elements(operand: Any) -> Any:
    if isinstance(operand, ng.Tensor):
        return ng.from_numpy(operand.numpy(force=True)[:2])
    return operand


# --- what users call -----------------------------------------------------------------------------

Arrange = Callable[[list[Any], dict[str, Any]], tuple[list[Any], dict[str, Any]]]


def _ways(names: list[str]) -> list[Arrange]:
    """Return the ways in which a public function may take what a primitive, or a sample, takes."""

    def first_alone(operands: list[Any], keywords: dict[str, Any]) -> Any:
        return operands[:1], dict(zip(names[1:], operands[1:], strict=False)) | keywords

    def numbers_named(operands: list[Any], keywords: dict[str, Any]) -> Any:
        named = dict(zip(names, operands, strict=False))
        tensors = [each for each in operands if isinstance(each, ng.Tensor)]
        return tensors, {n: v for n, v in named.items() if not isinstance(v, ng.Tensor)} | keywords

    return [
        lambda operands, keywords: (operands, keywords),
        lambda operands, keywords: ([*operands, *keywords.values()], {}),
        lambda operands, keywords: (operands[::-1], keywords),
        numbers_named,
        first_alone,
        lambda operands, keywords: (operands, {}),
    ]


def _public(primitive: Any, direct: Call) -> tuple[Callable[..., Any], Arrange]:
    """Return the public function that does what a call of a primitive does, and how to call it.

    Raises
    ------
    NotImplementedError
        If none is found. A primitive itself is never measured: its calls go the long way.
    """
    wanted = _outcome(direct.forward())
    words = primitive.name.split("_")
    found = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    for name in dict.fromkeys([primitive.name, getattr(primitive, "function_name", ""), *found]):
        for holder in (ng, ng.Tensor):
            function = getattr(holder, name, None)
            for arrange in _ways(primitive.inputs) if callable(function) else ():
                operands, keywords = arrange(direct.operands, direct.keywords)
                try:
                    if _outcome(function(*operands, **keywords)) == wanted:
                        return function, arrange
                except REFUSALS:
                    continue
    raise NotImplementedError(f"no public function was found that applies {primitive.name}")


def _outcome(result: Any) -> Any:
    """Return what tells whether two calls did the same: nodes, and bits."""
    results = [result] if isinstance(result, ng.Tensor) else list(result)
    return [(type(each.grad_fn), each.dtype, each.tolist().__repr__()) for each in results]


# --- operations with samples ---------------------------------------------------------------------


def _all(shape: tuple[int, ...], factor: float) -> tuple[int, ...]:
    return tuple(round(n * factor) if n > 1 else n for n in shape)


def _last(shape: tuple[int, ...], factor: float) -> tuple[int, ...]:
    return (*shape[:-1], round(shape[-1] * factor)) if shape else shape


def _first(shape: tuple[int, ...], factor: float) -> tuple[int, ...]:
    return (round(shape[0] * factor), *shape[1:]) if shape else shape


def _none(shape: tuple[int, ...], factor: float) -> tuple[int, ...]:
    return shape


# How shapes of operands, and tuples of lengths among the arguments, grow.
STRETCHES: tuple[tuple[Stretch, Stretch], ...] = (
    (_all, _none),
    (_last, _none),
    (_first, _none),
    (_all, _all),
    (_last, _last),
    (_first, _first),
    (_first, _last),
    (_last, _first),
)


def _enlarged_call(name: str, elements: int, requires_grad: bool) -> Call:
    """Return the first sample that can be stretched to the size, stretched."""
    primitive = CATALOGUE[name]
    samples = [
        _as_users_call(primitive, sample)
        for sample in primitive.samples or _default_samples(name, len(primitive.inputs))
    ]
    if elements <= 4:
        for sample in samples:
            call = _build(sample, requires_grad, _none, _none, 1)
            if call.elements():
                return call
    for sample in samples:
        for operand_stretch, argument_stretch in STRETCHES:
            stretches = (operand_stretch, argument_stretch)
            factor = _factor(sample, requires_grad, *stretches, elements)
            if factor is not None:
                return _build(sample, requires_grad, *stretches, factor)
    raise NotImplementedError(f"no sample of {name} can be brought to {elements} elements")


def _as_users_call(primitive: Any, sample: Any) -> Any:
    """Return a sample that calls a public function, if one takes what the sample's takes."""

    def public(make: Any) -> Any:
        function, operands, keywords = sample(make)
        if not found:
            try:
                direct = Call(*sample(_maker(True, _none, 1)))
                found.extend(_public(primitive, direct))
            except NotImplementedError:  # then it has arguments of its own for one
                found.extend((function, lambda *arguments: arguments))
        if function is found[0]:
            return function, operands, keywords
        return (found[0], *found[1](operands, keywords))

    found: list[Any] = []
    return public


def _default_samples(name: str, inputs: int) -> list[Callable[..., Any]]:
    """Return what stands in for the samples of an operation without a derivative."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise NotImplementedError(f"{name} has no samples and is no public function")
    return [lambda make: (function, [make(2, 3) for _ in range(inputs)], {})]


def _factor(
    sample: Any, requires_grad: bool, operands: Stretch, arguments: Stretch, elements: int
) -> float | None:
    """Return by how much to stretch lengths; None if the operation does not allow it."""
    sizes = []
    for factor in (1, 2, 4):
        try:
            call = _build(sample, requires_grad, operands, arguments, factor)
            sizes.append(call.elements())
            if requires_grad:
                call.with_cotangents()()
        except REFUSALS:
            return None
    if not 0 < sizes[1] < sizes[2]:
        return None
    power = round(math.log2(sizes[2] / sizes[1]))
    whole = max(1, round((elements / max(sizes[0], 1)) ** (1 / max(power, 1))))
    return whole


def _build(
    sample: Any, requires_grad: bool, operands: Stretch, arguments: Stretch, factor: float
) -> Call:
    function, tensors, keywords = sample(_maker(requires_grad, operands, factor))
    stretched = {
        name: arguments(value, factor) if _is_lengths(value) else value
        for name, value in keywords.items()
    }
    return Call(function, tensors, stretched)


def _is_lengths(value: Any) -> bool:
    return isinstance(value, tuple) and all(type(n) is int for n in value)


def _maker(requires_grad: bool, stretch: Stretch, factor: float) -> Callable[..., Any]:
    """Return what samples make their tensors with: of float32, and of the stretched shape."""
    random = np.random.default_rng(0)

    def make(*shape: int, low: float = -3, high: float = 3, distinct: bool = False) -> Any:
        lengths = stretch(shape, factor)
        count = math.prod(lengths)
        values: np.ndarray
        if distinct:
            # Steps that are prime to the count reach every number, and faster than a shuffle does.
            step = next(step for step in (7919, 7927, 7933) if math.gcd(step, count or 1) == 1)
            order = np.arange(count) * step % max(count, 1)
            values = low + (high - low) * (order + 0.5) / max(count, 1)
        else:
            values = np.resize(random.uniform(low, high, min(count, PERIOD)), count)
        tensor = ng.from_numpy(values.astype(np.float32).reshape(lengths))
        return tensor.requires_grad_() if requires_grad else tensor

    return make


def names(*, elementwise: bool, with_rule: bool = False) -> Iterator[str]:
    """Yield the names of the catalogue's operations of one sort, without `PARTS`."""
    for name in CATALOGUE:
        if (
            name not in PARTS
            and is_elementwise(name) is elementwise
            and (differentiable(name) or not with_rule)
        ):
            yield name
