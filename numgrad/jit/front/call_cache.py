"""The cache of calls of a jitted function: generated Python for calls that need no gradient.

Which trace fits is found out from a key that is quickly made; then one emitted function takes the
arguments' arrays, runs the program, and puts the results together. A trace that is called often
gets a method that finds out itself whether it fits (`CachedCall.quick`): it is for who calls with
the same kind of arguments again and again. If it computes little, its sizes are compiled in, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numba import from_dtype, types

from numgrad.base.dtypes import defaults
from numgrad.base.pytree import LEAF, TreeSpec, unflatten
from numgrad.base.tuning import (
    SPECIALISED_AFTER_CALLS,
    SPECIALISED_OPERATIONS,
    UNSPECIALISED_OPERATIONS,
)
from numgrad.graph.modes import interceptors, modes
from numgrad.graph.tensor import NO_EDGE, Tensor
from numgrad.jit.capture.guards import ERRORS
from numgrad.jit.front.compiled import Compiled

__all__ = ["CachedCall", "call_key"]

# What NumPy takes Python's numbers for, which is what compiled code returns.
_OF_PYTHON = (np.float64, np.complex128, np.bool_)
_ABSENT: Any = object()  # what stands for an argument that was not given
_ndarray = np.ndarray


def call_key(args: Sequence[Any]) -> Any:
    """Return what tells calls of one trace from others; None if a call goes the long way.

    A dtype stands in it by its id, since to hash it takes longer than all the rest. Whoever keeps
    the key has to keep the dtypes.
    """
    key: list[Any] = [modes.grad, defaults.floating]
    for argument in args:
        kind = type(argument)
        if kind is _ndarray:
            key += (id(argument.dtype), argument.shape)
        elif kind is Tensor and argument._edge is NO_EDGE and argument._base is None:
            array = argument._array
            key += (True, id(array.dtype), array.shape)
        elif kind is float:
            key.append(float)
        else:
            return None
    return tuple(key)


class CachedCall:
    """The fast path of one trace.

    Parameters
    ----------
    compiled : Compiled
        The trace; its results do not require grad, and no argument is among them.
    args : sequence
        Arguments like those that it is for, each an array, a tensor or a float.
    general : callable
        The method that finds the trace for any arguments.

    Attributes
    ----------
    call : callable
        Takes a tuple of arguments and returns the result.
    quick : callable or None
        A method of compiled functions, to be called as they are: it does the work itself where
        the trace fits, and goes the general way where not; None before there were many calls.
    strides : sequence
        The strides that the trace goes by, of which arguments.
    others : list of CachedCall
        Those for other strides.
    watch : Watch
        What the trace takes from outside.
    """

    __slots__ = (
        "_as_it_is",
        "_compiled",
        "_dtypes",
        "_general",
        "_kinds",
        "_left",
        "_orders",
        "call",
        "others",
        "quick",
        "strides",
        "watch",
    )

    def __init__(
        self,
        compiled: Compiled,
        args: Sequence[Any],
        general: Callable[..., Any],
    ) -> None:
        self._compiled = compiled
        self.strides = compiled.strides
        self.others: list[CachedCall] = []
        self.watch = compiled.watch
        self._kinds = [type(argument) for argument in args]
        arrays = [a._array if isinstance(a, Tensor) else np.asarray(a) for a in args]
        self._dtypes = [array.dtype for array in arrays]  # whose ids are in the key
        # Of the arguments whose strides it goes by: how these lie, as Numba writes that.
        self._orders: dict[int, Literal["A", "C", "F"]] = {
            k: "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
            for k, flags in [(k, arrays[k].flags) for k, _ in self.strides]
        }
        operations = len(compiled.program.graph.values())
        # Of other programs only what is around them in Python becomes less.
        self._as_it_is = operations > UNSPECIALISED_OPERATIONS or not compiled.program.is_short
        self._left = (
            SPECIALISED_AFTER_CALLS
            if self._as_it_is
            else round(SPECIALISED_AFTER_CALLS * max(1.0, operations / SPECIALISED_OPERATIONS) ** 2)
        )
        self.quick: Callable[..., Any] | None = None
        self._general = general
        lines, computed = self._run_program()
        run = self._emit("args", [self._unpack(), *lines], computed, {"program": compiled.program})
        self.call = self._counted(run)

    @classmethod
    def of(
        cls,
        compiled: Compiled,
        args: Sequence[Any],
        general: Callable[..., Any],
    ) -> CachedCall | None:
        """Return the fast path of a trace; None where a call takes more."""
        if compiled.differentiable or compiled.aliases or compiled.required:
            return None
        if any(output.kind == "argument" for output in compiled.outputs):
            return None
        return cls(compiled, args, general)

    def _counted(self, run: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
        """Return a call that makes a better one after some time."""

        def counted(args: Sequence[Any]) -> Any:
            self._left -= 1
            if self._left == 0:
                if self._as_it_is:
                    lines, computed = self._run_program()
                    self._make_quick(lines, computed, {"program": self._compiled.program})
                else:
                    self._compile_sizes()
                self.call = run
            return run(args)

        return counted

    def _run_program(self) -> tuple[list[str], list[str]]:
        """Return the line that runs the program as it is, and what finds each output then."""
        given = [f"asarray({a})" if a[-1].isdigit() else a for a in self._arrays()]
        computed = [f"results[{k}]" for k in range(len(self._compiled.program.graph.outputs))]
        return [f"    results = program([{', '.join(given)}])"], computed

    def _compile_sizes(self) -> None:
        """Make the quick call of a program for these sizes."""
        program = self._compiled.program
        dispatcher, graph = program.filler, program.graph
        signature = tuple(
            types.float64
            if kind is float
            else types.Array(from_dtype(value.dtype), len(value.shape), self._orders.get(k, "A"))
            for k, (kind, value) in enumerate(zip(self._kinds, graph.inputs, strict=True))
        )
        arrays = [output for output in graph.outputs if output.shape]
        signature += tuple(
            types.Array(from_dtype(output.dtype), len(output.shape), "C") for output in arrays
        )
        dispatcher.compile(signature)
        computed, filled, numbers = [], [], 0
        names: dict[str, Any] = {}
        for k, output in enumerate(graph.outputs):
            if output.shape:
                filled.append(f"y{k}")
                computed.append(f"y{k}")
                names[f"size_{k}"], names[f"type_{k}"] = output.shape, output.dtype
                continue
            found = f"results[{numbers}]"
            numbers += 1
            if output.dtype in _OF_PYTHON:
                found = f"array({found})"
            else:
                found = f"array({found}, type_{k})"
                names[f"type_{k}"] = output.dtype
            computed.append(found)
        names["entry"] = dispatcher.overloads[signature].entry_point
        lines = [
            *(f"    {name} = empty(size_{name[1:]}, type_{name[1:]})" for name in filled),
            f"    results = entry({', '.join([*self._arrays(), *filled])})",
        ]
        self._make_quick(lines, computed, names)

    def _make_quick(
        self, lines: Sequence[str], computed: Sequence[str], names: dict[str, Any]
    ) -> None:
        """Make the method that does these lines where the trace fits."""
        conditions, found = self._conditions()
        given = [f"a{k}" for k in range(len(self._kinds))]
        found |= {
            "ERRORS": ERRORS,
            "absent": _ABSENT,
            "general": self._general,
            "present": _present,
        }
        lines = [
            "    try:",
            f"        fits = {' and '.join(conditions)}",
            "    except ERRORS:  # something that the function takes from outside is not there",
            "        fits = False",
            "    if not fits:",
            f"        return general(self, *present([{', '.join(given)}]), *rest, **keywords)",
            "    self._hits += 1",
            *lines,
        ]
        parameters = ["self", *(f"{name}=absent" for name in given), "*rest", "**keywords"]
        self.quick = self._emit(", ".join(parameters), lines, computed, found | names)

    def _conditions(self) -> tuple[list[str], dict[str, Any]]:
        """Return what must hold for the quick call, and what the names in that mean."""
        conditions = ["not (rest or keywords or interceptors)", "modes.grad is grad"]
        conditions.append("defaults.floating is default")
        names: dict[str, Any] = {
            "NO_EDGE": NO_EDGE,
            "default": defaults.floating,
            "defaults": defaults,
            "grad": modes.grad,
            "modes": modes,
            "ndarray": np.ndarray,
            "interceptors": interceptors,
        }
        inputs = self._compiled.program.graph.inputs
        for k, (kind, value) in enumerate(zip(self._kinds, inputs, strict=True)):
            name = f"a{k}"
            if kind is float:
                conditions.append(f"type({name}) is float")
                continue
            if kind is Tensor:
                conditions.append(f"type({name}) is Tensor and {name}._edge is NO_EDGE")
                conditions.append(f"{name}._base is None")
                name = f"{name}._array"
            conditions.append(f"type({name}) is ndarray and {name}.dtype is dtype_{k}")
            conditions.append(f"{name}.shape == shape_{k}")
            names |= {f"dtype_{k}": self._dtypes[k], f"shape_{k}": value.shape}
        for k, strides in self.strides:
            array = f"a{k}._array" if self._kinds[k] is Tensor else f"a{k}"
            conditions.append(f"{array}.strides == strides_{k}")
            names[f"strides_{k}"] = strides
        outside, found = self.watch.guards.conditions()
        conditions += outside
        names |= found
        if self.watch.baked:
            conditions.append("not changed_numbers()")
            names["changed_numbers"] = self.watch.changed_numbers
        return conditions, names

    def _unpack(self) -> str:
        if not self._kinds:
            return "    pass"
        return f"    {', '.join(f'a{k}' for k in range(len(self._kinds)))}, = args"

    def _arrays(self) -> list[str]:
        """Return what stands for the array of each argument, or for the float."""
        return [f"a{k}._array" if kind is Tensor else f"a{k}" for k, kind in enumerate(self._kinds)]

    def _emit(
        self, arguments: str, lines: Sequence[str], computed: Sequence[str], names: dict[str, Any]
    ) -> Callable[..., Any]:
        """Return a function of some lines, which then puts the results together."""
        compiled = self._compiled
        namespace: dict[str, Any] = {
            "Tensor": Tensor,
            "array": np.array,
            "empty": np.empty,
            "asarray": np.asarray,
            "new": object.__new__,
            "spec": compiled.spec,
            "unflatten": unflatten,
            **names,
        }
        tail, leaves = [], []
        for k, (kind, which, _, laid) in enumerate(compiled.outputs):
            leaves.append(f"r{k}")
            if kind == "computed":
                array = computed[which]
                if laid is not None:
                    axes = laid.transposition()
                    namespace[f"place_{k}"] = laid.place
                    if axes is None:
                        array = f"place_{k}({array})"
                    elif axes == tuple(range(len(axes)))[::-1]:
                        array = f"{array}.T"  # in half of the time
                    else:
                        array = f"{array}.transpose{axes}"
                tail += [
                    f"    r{k} = new(Tensor)",
                    f"    r{k}._array = {array}",
                    f"    r{k}._counter = [0]",
                ]
            else:
                namespace[f"r{k}"] = which
        tail.append(f"    return {_structure(compiled.spec, leaves)}")
        exec("\n".join([f"def call({arguments}):", *lines, *tail]), namespace)
        call: Callable[..., Any] = namespace["call"]
        return call


def _present(arguments: list[Any]) -> list[Any]:
    """Return the arguments that were given."""
    return [argument for argument in arguments if argument is not _ABSENT]


def _structure(spec: TreeSpec, leaves: Sequence[str]) -> str:
    """Return the expression that makes the result of its leaves."""
    if spec == LEAF:
        return leaves[0]
    if spec.type in (tuple, list) and all(child == LEAF for child in spec.children):
        inside = ", ".join(leaves)
        if spec.type is list:
            return f"[{inside}]"
        return f"({inside},)" if leaves else "()"
    return f"unflatten(spec, [{', '.join(leaves)}])"
