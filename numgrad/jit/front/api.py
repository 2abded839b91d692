"""Jitted functions: traced once for each kind of arguments, then compiled."""

from __future__ import annotations

import functools
import inspect
import logging
import pickle
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.base import dtypes
from numgrad.base.environment import words_of
from numgrad.base.pytree import TreeSpec, flatten, unflatten
from numgrad.base.tuning import KEPT_LAYOUTS, KEPT_TRACES, SPECIALISED_AFTER_CALLS
from numgrad.codegen.numba_private import dumps
from numgrad.graph.modes.grad_modes import set_grad_enabled
from numgrad.graph.modes.state import interceptors, modes
from numgrad.graph.tensor import Tensor
from numgrad.jit.front.call_source import front_call, leaves_call
from numgrad.jit.front.compiled import Compiled
from numgrad.jit.front.lowered import Lowered
from numgrad.jit.front.node import backward_of
from numgrad.jit.front.recipes import made_of, portable
from numgrad.jit.front.signature import Static, describe, fitting, is_traced, plain_key
from numgrad.jit.front.trace_function import trace_function
from numgrad.jit.front.watch import Watch
from numgrad.jit.lowering.storage import root_of
from numgrad.ops.creation.from_data import from_numpy
from numgrad.runtime.garbage import without_collections

__all__ = ["CacheInfo", "Jitted", "Lowered"]

_log = logging.getLogger("numgrad.recompiles")


class CacheInfo(NamedTuple):
    """What `Jitted.cache_info` returns."""

    hits: int  #: calls that found a trace
    misses: int  #: calls that had to trace
    maxsize: int  #: the most traces that are kept
    currsize: int  #: the traces that are there


class Jitted:
    """What `jit` returns: call it as the function that it was made of."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Iterable[int] = (),
        static_argnames: str | Iterable[str] = (),
        *,
        frozen: Watch | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        self.static_numbers, self.static_names = _both(function, numbers, names)
        self._compiled: OrderedDict[Any, Compiled] = OrderedDict()
        # With this, what a function takes from outside must not have changed where it is traced.
        self._frozen = frozen
        self._hits = self._misses = 0
        # Compiled functions that were made of this one, by for which batches, or gradients.
        self.of_batches: dict[Any, Jitted] = {}
        self._restless = 0  # traces in a row that changed what they read

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function, compiled."""
        if interceptors and modes.trace is not None:  # inside a traced function it is part of that
            if modes.trace.has_numbers and modes.dual is None:  # and for a batch, made for that
                return modes.trace.call_compiled(self, args, kwargs)
            return self.function(*args, **kwargs)
        if interceptors and modes.dual is not None:
            leaves, spec = flatten((args, kwargs))
            if any(
                isinstance(leaf, Tensor) and modes.dual.tangent(leaf) is not None for leaf in leaves
            ):
                return self._as_it_is(leaves, spec)
        compiled, leaves = self._find(args, kwargs)
        if compiled.unrecorded and modes.unrecorded is not None:  # what it computes has tangents
            return self._as_it_is(*flatten((args, kwargs)))
        compiled.calls_left -= 1
        if compiled.calls_left == 0:
            self._go_first(compiled)
        return (compiled.run or self._first_run(compiled))(self, leaves)

    def _as_it_is(self, leaves: Sequence[Any], spec: TreeSpec) -> Any:
        """Run the function where its operations themselves know what to do with tangents."""
        made = [from_numpy(leaf) if type(leaf) is np.ndarray else leaf for leaf in leaves]
        args, kwargs = unflatten(spec, made)
        return self.function(*args, **kwargs)

    def _first_run(self, compiled: Compiled) -> Any:
        """Return what runs calls of a trace, made for its first one."""
        at_once = compiled.is_specialised and compiled.program.is_native_loop
        compiled.run = leaves_call(compiled, specialised=at_once)
        return compiled.run

    def _go_first(self, compiled: Compiled) -> None:
        """Have calls find out themselves, and first of all, whether this trace fits."""
        compiled.calls_left = SPECIALISED_AFTER_CALLS
        if compiled.front is None:
            call = front_call(compiled, Jitted.__call__, self._frozen is not None)
            if call is None:
                return
            attributes = {"__call__": call, "__module__": __name__, "__doc__": Jitted.__doc__}
            compiled.front = type("Jitted", (Jitted,), attributes)
            if compiled.is_specialised:
                compiled.run = leaves_call(compiled, specialised=True)
        self.__class__ = compiled.front

    def __reduce__(self) -> Any:
        """Pickle a function by its name if it has one, else with the function inside."""
        module, name = self.function.__module__, getattr(self.function, "__qualname__", None)
        if name is not None and _named(module, name) is self:
            if module != "__main__":
                return name
            # Another process may have another program there, or none (joblib's have not).
            return _find_or_make, (name, self._by_value())
        return _make, (portable(self.function), self.static_numbers, self.static_names)

    def _by_value(self) -> bytes | None:
        """Return what a function of the program itself can be made of; None if it can't be."""
        try:
            found: bytes = dumps((self.function, self.static_numbers, self.static_names))
        except Exception:  # of what it refers to, something can't be pickled, and says so anyhow
            return None
        return found

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind to an instance, as the function would."""
        return self if instance is None else functools.partial(self, instance)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace the function for arguments like these, and return what comes of it to look at.

        Parameters
        ----------
        *args, **kwargs
            Arguments of the shapes and dtypes that it is for; their numbers do not matter.

        Returns
        -------
        Lowered
            With ``graph``, ``source``, ``dispatcher`` and ``cost()``.

        Examples
        --------
        >>> import numgrad as ng
        >>> print(ng.jit(lambda x: 2 * x.exp()).lower(ng.ones(3)).graph.inputs[0].type)
        f32[3]
        """
        leaves, spec = flatten(self._marked(args, kwargs))
        with without_collections():
            return Lowered(trace_function(self.function, spec, leaves), leaves)

    def cache_info(self) -> CacheInfo:
        """Return how many calls found a trace, and how many traces there are.

        Examples
        --------
        >>> import numgrad as ng
        >>> double = ng.jit(lambda x: 2 * x)
        >>> double(ng.ones(3)), double(ng.zeros(3)), double(ng.ones(4))
        (tensor([2., 2., 2.]), tensor([0., 0., 0.]), tensor([2., 2., 2., 2.]))
        >>> double.cache_info()
        CacheInfo(hits=1, misses=2, maxsize=256, currsize=2)
        """
        kept = sum([1 + len(compiled.others) for compiled in self._compiled.values()])
        return CacheInfo(self._hits, self._misses, KEPT_TRACES, kept)

    def cache_clear(self) -> None:
        """Forget all traces."""
        self._compiled.clear()
        self.of_batches.clear()
        self._forget_front_call()

    def _marked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the arguments, the static ones marked."""
        if not self.static_numbers and not self.static_names:
            return args, kwargs
        marked = [Static(a) if k in self.static_numbers else a for k, a in enumerate(args)]
        named = {k: Static(v) if k in self.static_names else v for k, v in kwargs.items()}
        return tuple(marked), named

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Compiled, Any]:
        """Return the function compiled for such arguments, and their leaves."""
        key = None if kwargs or self.static_numbers else plain_key(args)
        leaves: Sequence[Any] = args
        if key is None:
            leaves, spec = flatten(self._marked(args, kwargs))
            key = self._key(leaves, spec)
        reason = None
        found = compiled = self._compiled.get(key)
        if compiled is not None and compiled.strides:
            found = compiled = fitting(compiled, leaves)
        if compiled is not None:
            if self._frozen is not None or compiled.watch.holds():
                self._hits += 1
                self._compiled.move_to_end(key)
                return compiled, leaves
            reason = compiled.watch.changed()
            self._forget_front_call()
        self._misses += 1
        if self._frozen is not None and (changed := self._frozen.changed()) is not None:
            raise RuntimeError(
                f"jit: {changed} is not what it was in the call whose gradient is asked for. A "
                "gradient of this kind (with create_graph, say) was not traced then: ask for it "
                "before the change"
            )
        leaves, spec = flatten(self._marked(args, kwargs))
        described = self._key(leaves, spec)
        if self._frozen is None:
            self._report(key, described, reason)
        static = [leaf.value if type(leaf) is Static else leaf for leaf in leaves]
        static = [leaf for leaf in static if not is_traced(leaf)]
        # It sees what the trace is going to see: what that changes itself is a change, too.
        watch = self._frozen or Watch(self.function, static)
        with without_collections():  # of what was recorded nothing is left behind
            trace = trace_function(self.function, spec, leaves)
            compiled = Compiled(trace, watch, spec, leaves, described)
            _keep(self._compiled, key, compiled, found)
            if self._frozen is None:
                watch.settle(trace, [each.watch for each in self._compiled.values()])
            del trace
        if self._frozen is None:
            if watch.guards.only_grew():  # it keeps what it made, and its gradient finds that
                compiled.left = Watch(self.function, static)
            else:
                self._warn_of_own_changes(watch, reason)
        if len(self._compiled) > KEPT_TRACES:
            self._compiled.popitem(last=False)
            self._forget_front_call()
        return compiled, leaves

    def _key(self, leaves: Sequence[Any], spec: TreeSpec) -> Any:
        """Return what a trace for these arguments depends on."""
        return (spec, modes.grad, dtypes.default_dtype(), *[describe(leaf) for leaf in leaves])

    def _warn_of_own_changes(self, watch: Watch, reason: str | None) -> None:
        """Say, once, that no trace can be used again, since each changes what it reads.

        The `reason` is what had changed since the last trace for such arguments.
        """
        label = watch.guards.broken()
        self._restless = 0 if label is None or reason is None else self._restless + 1
        if self._restless == 2:
            warnings.warn(
                f"jit: {label} is read by the function and changed by it, so that every call "
                "traces it anew: change it outside, or pass it as an argument and return it",
                UserWarning,
                stacklevel=4,
            )

    def _forget_front_call(self) -> None:
        """Have all calls find their traces the long way."""
        self.__class__ = Jitted

    def _report(self, key: Any, described: Any, changed: str | None) -> None:
        """Say why the function is traced, if the user asked for that."""
        if "recompiles" not in words_of("NUMGRAD_LOG", ["recompiles"]):
            return
        if changed is not None:
            why = f"{changed} is not what it was"
        elif not self._compiled:
            why = "it is called for the first time"
        else:
            last = key if key in self._compiled else next(reversed(self._compiled))
            why = _difference(self._compiled[last].described, described)
        name = getattr(self, "__name__", repr(self.function))
        if not _log.handlers:
            _log.addHandler(logging.StreamHandler())
        _log.warning("numgrad traces %s: %s", name, why)

    def leaves_of(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], TreeSpec, tuple[int, ...]]:
        """Return the leaves of arguments, their structure, and which are static in any case."""
        leaves, spec = flatten(self._marked(args, kwargs))
        static = tuple([k for k, leaf in enumerate(leaves) if type(leaf) is Static])
        return [leaf.value if type(leaf) is Static else leaf for leaf in leaves], spec, static

    def remade(self, function: Callable[..., Any], static: Sequence[int] = ()) -> Jitted:
        """Return a function compiled that was made of this one's."""
        return Jitted(function, static, frozen=self._frozen)

    def backward_of(
        self, leaves: Sequence[Any], spec: TreeSpec, moving: Sequence[int]
    ) -> tuple[Jitted, list[int]]:
        """Return the compiled function of gradients, and which leaves it is called with.

        It takes these, and then the cotangents.
        """
        traced = [k for k, leaf in enumerate(leaves) if is_traced(leaf)]
        given = [None if k in traced else leaf for k, leaf in enumerate(leaves)]
        key = spec, tuple(traced), tuple(moving), *given
        known = self.of_batches.get(key)
        if known is None:
            function = backward_of(self.function, spec, given, traced, moving, ())
            known = self.of_batches[key] = self.remade(function)
        return known, traced

    def _make_backward(
        self, compiled: Compiled, leaves: Sequence[Any], cotangents: Sequence[Any]
    ) -> tuple[Jitted, list[Tensor]]:
        """Return the compiled function of the gradients, traced for arguments of its own.

        And the tensors from outside whose numbers it reads.
        """
        static = [leaf.value for leaf in compiled.leaves]
        parts = compiled.arguments, static, compiled.traced, compiled.moving, compiled.sources
        backward = Jitted(backward_of(self.function, *parts), frozen=compiled.left)
        with set_grad_enabled(False):
            found, _ = backward._find((*leaves, *cotangents), {})
        read = {
            id(value.attributes["array"])
            for value in found.program.graph.values()
            if value.operation == "array"
        }
        tensors = [t for t, array, _ in compiled.left.tensors if id(root_of(array)) in read]
        return backward, tensors


def _keep(table: Any, key: Any, made: Any, stale: Any) -> None:
    """Keep what was made for arguments of some kind, beside what was made for other strides.

    `stale` is what was there for these, and does not hold any more.
    """
    head = table.pop(key, None)
    kept = [] if head is None else [each for each in (head, *head.others) if each is not stale]
    head, *others = [*kept, made][-KEPT_LAYOUTS - 1 :]
    head.others = others
    table[key] = head


def _difference(old: Any, new: Any) -> str:
    """Return what makes a key differ from the last one."""
    names = ("the structure of the arguments", "grad mode", "the default dtype")
    for name, before, after in zip(names, old, new, strict=False):
        if before != after:
            return f"{name} changed from {before} to {after}"
    for k, (before, after) in enumerate(zip(old[3:], new[3:], strict=False)):
        if before != after:
            return f"argument leaf {k} was {_spell(before)} and is {_spell(after)}"
    if old == new:
        return "it goes by how its arguments lie in memory, and one has other strides"
    return "its trace was dropped to make room"


def _spell(described: Any) -> str:
    """Return what `describe` said of a leaf, in words."""
    if isinstance(described, type):
        return f"a {described.__name__}"
    first, second, *requires_grad = described
    if isinstance(first, type):
        return repr(second)
    spelled = f"{second}[{', '.join(map(str, first))}]"
    return f"{spelled} that requires grad" if any(requires_grad) else spelled


def _both(
    function: Callable[..., Any], numbers: tuple[int, ...], names: tuple[str, ...]
) -> tuple[frozenset[int], frozenset[str]]:
    """Return static arguments by number and by name, each told by either."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a builtin without a signature
        return frozenset(numbers), frozenset(names)
    count = len(parameters)
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        outside = [n for n in numbers if not -count <= n < count]
        if outside:
            raise ValueError(
                f"jit: static_argnums has {outside[0]}, but the function has {count} parameters"
            )
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        unknown = [name for name in names if name not in parameters]
        if unknown:
            raise ValueError(
                f"jit: static_argnames has {unknown[0]!r}, but the function's parameters are "
                f"{', '.join(parameters) or 'none'}"
            )
    of_numbers = {parameters[n] for n in numbers if -count <= n < count}
    of_names = {parameters.index(name) for name in names if name in parameters}
    numbers = tuple(n % len(parameters) if parameters else n for n in numbers)
    return frozenset(numbers) | of_names, frozenset(names) | of_numbers


def _named(module: str, name: str) -> Any:
    """Return what has a name in a module, None if nothing has."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _make(function: Any, static_numbers: Any, static_names: Any) -> Jitted:
    """Return the compiled function that was pickled, or copied, as this."""
    return Jitted(made_of(function), static_numbers, static_names)


def _find_or_make(name: str, contents: bytes | None) -> Jitted:
    """Return a compiled function of the program itself, or one like it in another process."""
    found = _named("__main__", name)
    if isinstance(found, Jitted):
        return found
    if contents is None:
        raise AttributeError(
            f"jit: this process has no function {name!r} in its __main__, and what that refers to "
            "can't be pickled: put it in a module that both processes import"
        )
    return Jitted(*pickle.loads(contents))
