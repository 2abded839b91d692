"""Loops over rows: `scan`, `map` and `associative_scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numgrad.base import pytree
from numgrad.base.pytree import TreeSpec
from numgrad.func.control.arguments import (
    Leaves,
    builder_of,
    check_callable,
    check_same,
    name_of,
    read_leaves,
    read_returned,
)
from numgrad.func.control.checkpoints import Policy, read_policy, segments_of
from numgrad.func.control.ranges import keeps, replay
from numgrad.func.control.tracing import recorder_of
from numgrad.graph.modes.state import modes
from numgrad.graph.tensor import Tensor
from numgrad.ops.movement.joining import cat, stack

__all__ = ["associative_scan", "map", "scan"]

_NO_ROWS = "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    *,
    dim: int = 0,
    checkpoint: Policy | int | str | None = None,
) -> tuple[Any, Any]:
    """Carry a value through the rows of tensors, and stack what each step gives.

    Mirrors ``jax.lax.scan`` and PyTorch's ``scan``. It computes what this loop does::

        ys = []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, torch.stack(ys)

    Parameters
    ----------
    f : callable
        ``f(carry, x)`` returns the next carry, with the structure, shapes and dtypes of the last
        one, and a pytree of tensors to stack (or None). It may close over tensors.
    init : pytree of tensors
        The first carry. Plain numbers become tensors.
    xs : pytree of tensors, optional
        Their rows are taken one after the other; all have the same number of rows. Without it,
        ``x`` is None.
    length : int, optional
        The number of steps; needed if there are no `xs`.
    reverse : bool
        Whether to begin at the last row. ``ys`` are in the order of `xs` still.
    unroll : int
        How many steps a compiled loop makes in one go; the results are the same.
    dim : int
        The dimension of `xs` that is the rows', and of ``ys``.
    checkpoint : int, "sqrt", "log" or Binomial, optional
        What is kept for derivatives. Without it, everything that the steps' operations save. With
        it, only some carries are, and the steps in between run again:

        - an int k: every k-th carry is kept, and k steps are held at once;
        - ``"sqrt"``: as many steps are held as carries are kept, about sqrt(n) for n steps. Each
          step runs twice;
        - ``Binomial(carries)``: at most so many carries are kept and one step is held (Revolve);
          the fewer, the more often steps run;
        - ``"log"``: that with log2(n) carries, for which a step runs about log2(n) times at most.

        Forward mode of `numgrad.func`, and derivatives of any order, go through loops of their own,
        each of which keeps as few.

    Returns
    -------
    carry : pytree of tensors
        The last one.
    ys : pytree of tensors
        What `f` gave second, stacked along `dim`.

    Raises
    ------
    RuntimeError
        If the carry changes its structure, shapes or dtypes, `f` returns no pair, or its second
        result has other structures, shapes or dtypes in other steps; if `xs` differ in length, have
        no rows, or have not `length` of them, or if neither is given.

    Examples
    --------
    >>> import numgrad as ng
    >>> def step(carry, x):
    ...     carry = 0.5 * carry + x
    ...     return carry, carry
    >>> ng.func.scan(step, ng.tensor(0.0), ng.tensor([1.0, 2.0, 3.0]))
    (tensor(4.2500), tensor([1.0000, 2.5000, 4.2500]))

    Without rows, and with few carries kept for the gradient:

    >>> def decay(x):
    ...     return ng.func.scan(lambda c, _: (c * 0.99, None), x, length=100, checkpoint="sqrt")[0]
    >>> ng.func.grad(decay)(ng.tensor(1.0))
    tensor(0.3660)
    """
    check_callable("scan", f=f)
    policy = read_policy("scan", checkpoint)
    for name, flag in (("dim", dim), ("unroll", unroll)):
        if not isinstance(flag, int) or isinstance(flag, bool):
            raise RuntimeError(f"{name.capitalize()} must be an int, but got {type(flag)}")
    if unroll < 1:
        raise RuntimeError(f"Unroll must be at least 1, but got {unroll}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    carry, carry_spec = read_leaves(init, "init")
    columns, xs_spec = read_leaves(xs, "xs")
    columns = [c if c is None or not dim else c.movedim(dim, 0) for c in _checked(columns, dim)]
    count = _count(columns, length)
    ys_spec: list[TreeSpec] = []
    first: list[Leaves] = []
    api, handed_on, role = getattr(f, "words", ("scan", "carry", "f"))
    where = f"Where: {role} {name_of(f)}"
    carry_of, row_of = builder_of(carry_spec), builder_of(xs_spec)

    def step(current: Leaves, row: Leaves) -> tuple[Leaves, Leaves]:
        result: Any = f(carry_of(current), row_of(row))
        if not isinstance(result, tuple) or len(result) != 2:
            kind = "Tensor" if isinstance(result, Tensor) else type(result).__name__
            raise RuntimeError(
                f"scan: Expect f to return a tuple (next_carry, y) but got {kind}.\n{where}"
            )
        after = read_returned(result[0], current, handed_on)
        check_same(api, ("init", handed_on), (carry, carry_spec), after, where)
        ys, spec = read_returned(result[1], first[0] if first else (), "y")
        if first:
            names = "the first y", "y"
            check_same("scan", names, (first[0], ys_spec[0]), (ys, spec), where)
        else:
            first.append([None if y is None else y.detach() for y in ys])
            ys_spec.append(spec)
        return after[0], ys

    recorded = recorder_of("scan")
    if recorded is not None and count > unroll:
        segments = segments_of(policy, count)
        carry, stacked = _recorded(recorded, step, carry, columns, count, reverse, segments)
    elif policy is not None and keeps():
        rows = [c.flip(0) if reverse and c is not None else c for c in columns]
        carry, stacked = replay(step, carry, rows, policy, count)
        stacked = [y.flip(0) if reverse and y is not None else y for y in stacked]
    else:
        carry, stacked = _unrolled(step, carry, columns, count, reverse)
    if dim:
        stacked = [y if y is None or y.ndim <= dim else y.movedim(0, dim) for y in stacked]
    return pytree.unflatten(carry_spec, carry), pytree.unflatten(ys_spec[0], stacked)


def _checked(columns: Leaves, dim: int) -> Leaves:
    """Return what to take rows of, if there are any to take."""
    for column in columns:
        if column is not None:
            shape = column._array.shape
            if not -len(shape) <= dim < len(shape) or not shape[dim]:
                raise RuntimeError(_NO_ROWS)
    return columns


def _count(columns: Leaves, length: Any) -> int:
    """Return the number of steps."""
    lengths = [column._array.shape[0] for column in columns if column is not None]
    if length is not None:
        if not isinstance(length, int) or isinstance(length, bool):
            raise RuntimeError(f"Length must be an int, but got {type(length)}")
        if length < 1:
            raise RuntimeError(f"scan: Expected length to be at least 1, but got {length}")
    elif not lengths:
        raise RuntimeError("scan: Expected xs with at least one tensor leaf, or length to be given")
    if len(set(lengths)) > 1:
        raise RuntimeError(
            f"scan: Expected all xs leaves to have the same number of rows, but got {lengths}"
        )
    if lengths and length is not None and lengths[0] != length:
        raise RuntimeError(
            f"scan: Expected length to be the number of rows of xs, but got length {length} and "
            f"{lengths[0]} rows"
        )
    return lengths[0] if lengths else length


def _recorded(
    recorder: Callable[..., Any],
    step: Callable[[Leaves, Leaves], tuple[Leaves, Leaves]],
    carry: Leaves,
    columns: Leaves,
    count: int,
    reverse: bool,
    segments: Sequence[int],
) -> tuple[Leaves, Leaves]:
    """Have a recorder record the loop; with `segments` as loops within loops, of so many steps.

    For the gradient of a loop its carries are kept. Those of an inner one are computed again.
    """
    if not segments:
        result: tuple[Leaves, Leaves] = recorder(step, carry, columns, count, reverse)
        return result
    size, *inner = segments
    whole = count // size * size

    def segment(carry: Leaves, rows: Leaves) -> tuple[Leaves, Leaves]:
        open_now: Any = modes.trace  # another where gradients are computed of a batch
        return _recorded(open_now.scan, step, carry, rows, size, reverse, inner)

    found: list[Leaves] = []
    for first, last in ((whole, count), (0, whole)) if reverse else ((0, whole), (whole, count)):
        part = [None if c is None else c[first:last] for c in columns]
        if first == last:
            continue
        if first == whole:
            carry, ys = recorder(step, carry, part, last - first, reverse)
        else:
            rows = [None if c is None else c.unflatten(0, (-1, size)) for c in part]
            carry, ys = recorder(segment, carry, rows, last // size, reverse, True)
            ys = [None if y is None else y.flatten(0, 1) for y in ys]
        found.append(ys)
    if len(found) == 1:
        return carry, found[0]
    head, tail = reversed(found) if reverse else found
    return carry, [None if a is None else cat((a, b)) for a, b in zip(head, tail, strict=True)]


def _unrolled(
    step: Callable[[Leaves, Leaves], tuple[Leaves, Leaves]],
    carry: Leaves,
    columns: Leaves,
    count: int,
    reverse: bool,
) -> tuple[Leaves, Leaves]:
    """Make all steps one after the other, each recorded as its operations are."""
    rows = [None if column is None else column.unbind(0) for column in columns]
    collected: list[Leaves] = []
    for number in reversed(range(count)) if reverse else range(count):
        carry, ys = step(carry, [None if row is None else row[number] for row in rows])
        collected.append(ys)
    if reverse:
        collected.reverse()
    return carry, [
        None if parts[0] is None else stack(parts) for parts in zip(*collected, strict=True)
    ]


def map(f: Callable[..., Any], xs: Any, *args: Any, checkpoint: Any = None) -> Any:
    """Return the results of a function of each row, stacked.

    Mirrors PyTorch's ``map`` and ``jax.lax.map``: ``torch.stack([f(x, *args) for x in xs])``. The
    rows are taken one after the other.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns a pytree of tensors.
    xs : pytree of tensors
        All have the same number of rows.
    *args
        Handed through to every call.
    checkpoint : int, "sqrt", "log" or Binomial, optional
        See `scan`.

    Returns
    -------
    pytree of tensors
        What `f` returns, with a first dim for the rows.

    Raises
    ------
    RuntimeError
        If `xs` differ in length or have no rows, or the results differ in structure, shape or
        dtype.

    Examples
    --------
    >>> import numgrad as ng
    >>> rows = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.func.map(lambda x, y: (x * y).sum(), rows, ng.tensor(10.0))
    tensor([30., 70.])
    """
    check_callable("map", f=f)

    def carried(carry: Any, x: Any) -> tuple[Any, Any]:
        return carry, f(x, *args)

    carried.__wrapped__ = f  # type: ignore[attr-defined] # whom errors name
    return scan(carried, None, xs, checkpoint=checkpoint)[1]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int = 0,
    reverse: bool = False,
    combine_mode: str = "generic",
) -> Any:
    """Return all the prefixes of rows that an associative function combines.

    Mirrors PyTorch's ``associative_scan``. Row i of the result is
    ``combine_fn(... combine_fn(combine_fn(x[0], x[1]), x[2]) ..., x[i])``.

    Parameters
    ----------
    combine_fn : callable
        Takes two pytrees like `xs` and returns one. ``combine_fn(combine_fn(a, b), c)`` and
        ``combine_fn(a, combine_fn(b, c))`` are the same.
    xs : pytree of tensors
        All have the same number of rows.
    dim : int
        The dimension that is the rows'.
    reverse : bool
        Whether to combine from the last row on: row i is then of the rows from i to the last.
    combine_mode : {"generic", "pointwise"}
        With ``"generic"``, `combine_fn` gets one row each, and rows are combined one after the
        other. With ``"pointwise"`` it gets many at once, in a further first dim, and is called
        about 2 log2(n) times: it may do nothing but compute element by element, or treat that dim
        as a batch, as matrix products do. (PyTorch's default is this one, which it has on GPUs
        only.)

    Returns
    -------
    pytree of tensors
        Like `xs`.

    Raises
    ------
    ValueError
        If `xs` has no leaves or no rows, or the mode is none.
    RuntimeError
        If `xs` differ in length, or `combine_fn` returns another structure, or other shapes or
        dtypes than it is given.

    Examples
    --------
    >>> import numgrad as ng
    >>> ng.func.associative_scan(ng.maximum, ng.tensor([1.0, 3.0, 2.0, 5.0]))
    tensor([1., 3., 3., 5.])

    The states of x' = a x + b, in logarithmically many calls:

    >>> def compose(first, second):
    ...     return first[0] * second[0], second[0] * first[1] + second[1]
    >>> a, b = ng.full((4,), 0.5), ng.ones(4)
    >>> ng.func.associative_scan(compose, (a, b), combine_mode="pointwise")[1]
    tensor([1.0000, 1.5000, 1.7500, 1.8750])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError("Dim must be an int, but got " + str(type(dim)))
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    columns, spec = read_leaves(xs, "xs")
    if all(column is None for column in columns):
        raise ValueError("Expected at least 1 xs leaf")
    for column in columns:
        shape = () if column is None else column._array.shape
        if not -len(shape) <= dim < len(shape) or not shape[dim]:
            raise ValueError(_NO_ROWS)
    columns = [column.movedim(dim, 0) for column in columns]
    if reverse:
        columns = [column.flip(0) for column in columns]
    _count(columns, None)
    where = f"Where: combine_fn {name_of(combine_fn)}"
    tree_of = builder_of(spec)

    def combine(first: Leaves, second: Leaves) -> Leaves:
        result = combine_fn(tree_of(first), tree_of(second))
        after = read_returned(result, first, "combine_fn")
        names = "xs", "the result of combine_fn"
        check_same("associative_scan", names, (first, spec), after, where)
        return after[0]

    scanned = (_prefixes if combine_mode == "pointwise" else _one_by_one)(combine, columns)
    if reverse:
        scanned = [column.flip(0) for column in scanned]
    return pytree.unflatten(spec, [column.movedim(0, dim) for column in scanned])


def _one_by_one(combine: Callable[[Leaves, Leaves], Leaves], columns: Leaves) -> Leaves:
    """Combine each row with all those before it."""
    rows = list(zip(*[column.unbind(0) for column in columns], strict=True))
    found = [list(rows[0])]
    for row in rows[1:]:
        found.append(combine(found[-1], list(row)))
    return [stack(parts) for parts in zip(*found, strict=True)]


def _prefixes(combine: Callable[[Leaves, Leaves], Leaves], columns: Leaves) -> Leaves:
    """Combine neighbours, scan these halves, and combine each with the row that follows.

    The recurrence is that of parallel prefix sums: the prefixes of the pairs are every second
    prefix of the rows.
    """
    count = columns[0]._array.shape[0]
    if count < 2:
        return columns
    pairs = combine([c[0 : count - 1 : 2] for c in columns], [c[1::2] for c in columns])
    odd = _prefixes(combine, pairs)
    if count == 2:
        return [cat([c[:1], o]) for c, o in zip(columns, odd, strict=True)]
    before = [o[: (count - 1) // 2] for o in odd]
    even = combine(before, [c[2::2] for c in columns])
    even = [cat([c[:1], e]) for c, e in zip(columns, even, strict=True)]
    return [_interleaved(e, o) for e, o in zip(even, odd, strict=True)]


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """Return rows of two tensors by turns; the first may have one more."""
    count = odd._array.shape[0]
    shape = (2 * count, *odd._array.shape[1:])
    rows = stack([even[:count], odd], 1).reshape(shape)
    return rows if even._array.shape[0] == count else cat([rows, even[count:]])
