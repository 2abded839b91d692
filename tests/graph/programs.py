"""Random programs of views and in-place operations, to be run by numgrad and by PyTorch.

A program is a list of steps, each a plain tuple, so that hypothesis can shrink it. Running it keeps
a pool of tensors; a step picks tensors by a number (modulo the pool's size) and makes a view of
one, writes to one, or computes a new one. After every step the state of the whole pool is noted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

__all__ = ["PROGRAMS", "assert_same", "run_program"]

Step = tuple[Any, ...]

VIEWS: dict[str, Callable[[Any, Any, int], Any]] = {
    "select": lambda m, t, k: t[k % t.shape[0]] if t.ndim and t.shape[0] else t.view(t.shape),
    "slice": lambda m, t, k: t[k % 2 :] if t.ndim else t.view(t.shape),
    "step": lambda m, t, k: t[k % 2 :: 2] if t.ndim else t.unsqueeze(0),
    "narrow": lambda m, t, k: t.narrow(-1, 0, (t.shape[-1] + 1) // 2) if t.ndim else t.unsqueeze(0),
    "transpose": lambda m, t, k: t.transpose(0, -1) if t.ndim else t.unsqueeze(0),
    "unsqueeze": lambda m, t, k: t.unsqueeze(k % (t.ndim + 1)),
    "squeeze": lambda m, t, k: t.squeeze(),
    "view": lambda m, t, k: t.view(-1) if t.is_contiguous() else t.unsqueeze(-1),
    "diagonal": lambda m, t, k: t.diagonal() if t.ndim >= 2 else t.unsqueeze(0),
    "expand": lambda m, t, k: t.unsqueeze(0).expand(2, *t.shape),
    "detach": lambda m, t, k: t.detach(),
    "unbind": lambda m, t, k: (
        t.unbind(0)[k % t.shape[0]] if t.ndim and t.shape[0] else t.view(t.shape)
    ),
    "split": lambda m, t, k: t.split(1)[0] if t.ndim and t.shape[0] else t.view(t.shape),
    "permute": lambda m, t, k: t.permute(tuple(reversed(range(t.ndim)))),
    "all": lambda m, t, k: t[...],
}
WRITES: dict[str, Callable[[Any, Any, Any, int], Any]] = {
    "add": lambda m, t, u, k: t.add_(u),
    "iadd": lambda m, t, u, k: t.__iadd__(u),
    "sub": lambda m, t, u, k: t.sub_(u),
    "mul": lambda m, t, u, k: t.mul_(u),
    "div": lambda m, t, u, k: t.div_(u),
    "copy": lambda m, t, u, k: t.copy_(u),
    "add number": lambda m, t, u, k: t.add_(0.5 + k),
    "mul number": lambda m, t, u, k: t.mul_(0.5 + k % 2),
    "neg": lambda m, t, u, k: t.neg_(),
    "tanh": lambda m, t, u, k: t.tanh_(),
    "sin": lambda m, t, u, k: t.sin_(),
    "exp": lambda m, t, u, k: t.tanh_().exp_(),
    "square": lambda m, t, u, k: t.pow_(2),
    "clamp": lambda m, t, u, k: t.clamp_(-1.0, 1.0),
    "zero": lambda m, t, u, k: t.zero_(),
    "fill": lambda m, t, u, k: t.fill_(0.25 + k),
    "set all": lambda m, t, u, k: t.__setitem__(Ellipsis, u.clone()),
    "set first": lambda m, t, u, k: t.__setitem__(0, 0.75),
    "set first to": lambda m, t, u, k: t.__setitem__(0, u.flatten()[0]),
    "set slice": lambda m, t, u, k: t.__setitem__(slice(k % 2, None), u.flatten()[-1]),
    "set where": lambda m, t, u, k: t.__setitem__(t > 0.5, 0.125),
    "set at": lambda m, t, u, k: t.__setitem__(m.tensor([0]), u.flatten()[0].clone()),
    "lerp": lambda m, t, u, k: t.lerp_(u, 0.25),
    "addcmul": lambda m, t, u, k: t.addcmul_(u, u, value=0.5),
    "masked fill": lambda m, t, u, k: t.masked_fill_(t > 0.5, 0.125),
}
RESULTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "times": lambda m, t, u: t * u,
    "plus": lambda m, t, u: t + u,
    "times two": lambda m, t, u: t * 2,
    "sine": lambda m, t, u: t.sin(),
    "hyperbolic": lambda m, t, u: t.tanh(),
    "clone": lambda m, t, u: t.clone(),
    "sum": lambda m, t, u: t.sum(),
}

_pick = st.integers(0, 11)
_small = st.integers(0, 3)
_steps = st.one_of(
    st.tuples(st.just("view"), st.sampled_from(sorted(VIEWS)), _pick, _small),
    st.tuples(st.just("view"), st.sampled_from(sorted(VIEWS)), _pick, _small),
    st.tuples(
        st.sampled_from(["write", "write", "write without grad"]),
        st.sampled_from(sorted(WRITES)),
        _pick,
        _pick,
        _small,
    ),
    st.tuples(st.just("result"), st.sampled_from(sorted(RESULTS)), _pick, _pick),
    st.tuples(st.just("view without grad"), st.sampled_from(sorted(VIEWS)), _pick, _small),
    st.tuples(st.just("retain"), _pick),
)
PROGRAMS = st.lists(_steps, min_size=1, max_size=8)


def run_program(m: Any, program: list[Step]) -> list[Any]:
    """Run a program with a module and return what could be seen, as plain data."""
    w = m.tensor([[0.5, -1.25], [2.0, 0.75]], dtype=m.float64, requires_grad=True)
    c = m.tensor([[1.5, 0.25], [-0.5, 1.0]], dtype=m.float64)
    pool = [w * 1, c, w, w.clone()[0]]
    seen: list[Any] = []
    for step in program:
        seen.append((step, _attempt(lambda step=step: _run_step(m, pool, step))))
        seen.append([_state(tensor) for tensor in pool])
    # A view may have become one that has no history to give, and may not be used any more.
    usable = [
        tensor for tensor in pool if not isinstance(_attempt(lambda t=tensor: t.grad_fn), str)
    ]
    total = m.zeros((), dtype=m.float64)
    for weight, tensor in enumerate(usable, start=1):
        total = total + tensor.sum() * weight
    seen.append(_attempt_backward(lambda: total.backward(retain_graph=True)))
    seen.append(
        [
            None if t.grad is None else _numbers(t.grad)
            for t in usable
            if t.retains_grad or t.grad_fn is None
        ]
    )
    seen.append(_attempt_backward(lambda: _second_order(m, total, w)))
    return seen


def assert_same(found: Any, expected: Any) -> None:
    """Raise unless what two runs saw is the same, numbers within rounding."""
    if isinstance(found, float) and isinstance(expected, float):
        close = math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
        assert close or (math.isnan(found) and math.isnan(expected))
    elif isinstance(found, dict):
        assert_same(list(found.items()), list(expected.items()))
    elif isinstance(found, (list, tuple)) and isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            assert_same(left, right)
    else:
        assert found == expected


def _run_step(m: Any, pool: list[Any], step: Step) -> None:
    kind, *rest = step
    if kind in ("view", "view without grad"):
        name, position, k = rest
        with m.set_grad_enabled(kind == "view"):
            pool.append(VIEWS[name](m, pool[position % len(pool)], k))
    elif kind in ("write", "write without grad"):
        name, position, other, k = rest
        target, source = pool[position % len(pool)], _operand(pool[other % len(pool)])
        if 0 in target.stride():
            return  # PyTorch lets some writes pass, and fails in the backward pass
        with m.set_grad_enabled(kind == "write"):
            if source is not target and _overlap(source, target):
                source = source.clone()  # PyTorch may read what it has just written
            WRITES[name](m, target, source, k)
    elif kind == "result":
        name, position, other = rest
        operands = (_operand(pool[position % len(pool)]), _operand(pool[other % len(pool)]))
        pool.append(RESULTS[name](m, *operands))
    else:
        tensor = pool[rest[0] % len(pool)]
        if tensor._base is None:  # after a write to the view itself PyTorch retains nothing
            tensor.retain_grad()


def _operand(tensor: Any) -> Any:
    """Return a tensor to compute with: detached, if it is a view that lets no gradient through.

    PyTorch does not save the other operand then; we do, and may find that it was written to.
    """
    through = tensor._base is None or tensor.grad_fn is not None
    return tensor if through or not tensor.requires_grad else tensor.detach()


def _overlap(left: Any, right: Any) -> bool:
    """Whether the memory that two tensors span has a part in common."""
    (start, stop), (other_start, other_stop) = (
        (
            tensor.data_ptr(),
            tensor.data_ptr()
            + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
            * tensor.element_size(),
        )
        for tensor in (left, right)
    )
    return start <= other_stop and other_start <= stop


def _second_order(m: Any, total: Any, w: Any) -> Any:
    if not total.requires_grad:
        return None
    (first,) = m.autograd.grad(total, w, create_graph=True, materialize_grads=True)
    if not first.requires_grad:
        return None
    (second,) = m.autograd.grad((first * first).sum(), w, materialize_grads=True)
    return _numbers(second)


def _attempt(action: Callable[[], Any]) -> Any:
    """Return what an action gives, or the words of its error."""
    try:
        return action()
    except IndexError:
        return "IndexError"  # its words are a matter of the tests of indexing
    except RuntimeError as error:
        return f"RuntimeError: {error}"


def _attempt_backward(action: Callable[[], Any]) -> Any:
    """Return what a backward pass gives, or that it met what was written to.

    Of several things that were, PyTorch and we may meet different ones first; and a saved view that
    has no history to give raises, in PyTorch, while it is named.
    """
    outcome = _attempt(action)
    return "modified" if isinstance(outcome, str) and "modified" in outcome else outcome


def _numbers(tensor: Any) -> Any:
    return [list(tensor.shape), tensor.detach().flatten().tolist()]


def _state(tensor: Any) -> Any:
    return {
        "values": _numbers(tensor),
        "node": _attempt(lambda: _name(tensor.grad_fn)),
        "next": _attempt(
            lambda: tensor.grad_fn and [_name(n) for n, _ in tensor.grad_fn.next_functions]
        ),
        "requires_grad": tensor.requires_grad,
        "is_leaf": _attempt(lambda: tensor.is_leaf),
        "version": tensor._version,
        "view": tensor._base is not None,
    }


def _name(node: Any) -> str | None:
    return None if node is None else node.name()
