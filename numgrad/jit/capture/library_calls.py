"""What calls of functions give that are not followed: Python's, NumPy's, and this package's."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.jit.capture.contents import rows
from numgrad.jit.capture.frames import Frames, each_of, every_of
from numgrad.jit.capture.guards import is_a
from numgrad.jit.capture.meaning import Tokens, Value
from numgrad.jit.capture.tensor_names import gives_tensors
from numgrad.jit.capture.values import ANY, NUMBER, TENSOR

__all__ = ["BUILTINS", "OF_ARRAYS", "LibraryCalls"]

_NONE: Tokens = frozenset()

# fmt: off
# Methods and attributes of arrays that are arrays: the numbers in those are still NumPy's.
OF_ARRAYS = frozenset((
    "T", "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "base", "byteswap",
    "choose", "clip", "compress", "conj", "conjugate", "copy", "cumprod", "cumsum", "diagonal",
    "dot", "fill", "flat", "flatten", "imag", "mT", "max", "mean", "min", "nonzero", "partition",
    "prod", "put", "ravel", "real", "repeat", "reshape", "resize", "round", "searchsorted", "sort",
    "squeeze", "std", "sum", "swapaxes", "take", "trace", "transpose", "var", "view",
))
BUILTINS = {
    getattr(builtins, name): way
    for way, names in {
        "nothing": "len isinstance issubclass id callable hasattr print object Exception",
        "same": "iter reversed slice",
        "list": "list tuple dict",
        "hashed": "set frozenset sorted",
        "compared": "max min any all",
        "decides": "float int complex bool str bytes hash round range format ascii repr chr divmod",
        "computed": "abs pow sum",
        "next": "next", "zip": "zip", "enumerate": "enumerate", "map": "map", "filter": "filter",
        "super": "super", "getattr": "getattr", "setattr": "setattr", "type": "type",
    }.items()
    for name in names.split()
}
BUILTINS[deque] = "list"
# fmt: on


class LibraryCalls(Frames):
    """What calls give of what is in libraries."""

    def call_ours(self, every: Tokens) -> None:
        """Note what decides in methods of tensors and in functions of this package.

        A parameter may be asked for its number, and nothing tells of that: so what NumPy computed
        may decide, and what could be a number or a list of dims, though it may be an index.
        """
        for token in self.with_contents(every):
            thing: Any = self.things.get(token)
            is_array = is_a(thing, np.ndarray)
            if token[0] == "of" or (is_array and (thing.size == 1 or thing.dtype.kind in "iub")):
                self.decide((token,))
        self.escape(frozenset(filter(self.is_called, every)))

    def call_library(
        self,
        thing: Any,
        given: Sequence[Value],
        named: Mapping[str, Value],
        spread: Tokens,
        at: int,
    ) -> Tokens:
        """Return what a function gives that is not followed, of Python's, NumPy's or ours."""
        every = every_of(given, named, spread)
        try:
            way = BUILTINS.get(thing)
        except TypeError:  # it can't be a key
            way = None
        if way is not None:
            return self.call_builtin(way, given, every, at)
        module: Any = getattr(thing, "__module__", None) or type(thing).__module__
        if is_a(thing, FunctionType):  # `functools.wraps` tells the name of another one
            module = thing.__globals__.get("__name__")
        package = module.partition(".")[0] if isinstance(module, str) else ""
        kinds = (np.ufunc, FunctionType, BuiltinFunctionType, type)
        is_numpys = is_a(thing, np.ufunc) or (
            package == "numpy" and (is_a(thing, kinds) or hasattr(thing, "__wrapped__"))
        )
        functions = frozenset(filter(self.is_called, every))
        if is_numpys and not functions:
            self.use_all(every)
            return self.computed(frozenset((NUMBER,)), *each_of(given, named, spread))
        if package == "numgrad":
            inner = self.reach(thing)[1] if is_a(thing, FunctionType) else []
            found = set(functions)
            for each in (*functions, *self.of_all(f for f in inner if id(f) in self.known)):
                rest = every - {each}
                found |= self.call_one(each, "", (), {}, rest, at)
            self.call_ours(every - functions)
            return frozenset((*found, TENSOR if gives_tensors(thing) else NUMBER))
        self.use_all(every)
        self.escape(every | self.of(thing))
        return frozenset((ANY,))

    def is_called(self, token: Any) -> bool:
        """Whether a token is a function, or an object that is called like one."""
        if token[0] != "is":
            return token[0] in ("code", "bound")
        thing = self.things[token]
        return callable(thing) and not is_a(thing, (type, Tensor))

    def call_builtin(self, way: str, given: Sequence[Value], every: Tokens, at: int) -> Tokens:
        first = given[0].tokens if given else every
        number: Tokens = frozenset((NUMBER,))
        items = self.items(first) if way in ("computed", "compared", "hashed", "next") else _NONE
        if way == "nothing":
            self.measure(every)
            return number
        if way == "same":
            return every
        if way == "type":
            return self.computed(every) & {ANY}
        if way == "computed":
            return self.computed(every | items)
        if way == "decides":
            self.use_all(every)
            return number
        if way in ("compared", "hashed"):
            self.decide(every | items | self.call_all(every, items))
            return every | items if way == "compared" else self.make(at, items)
        if way == "list":
            return self.make(at, self.items(every))
        if way == "next":
            return items | every - first
        if way == "zip":
            return rows([self.items(each.tokens) for each in given])
        if way == "enumerate":
            return rows([number, self.items(first)])
        if way in ("map", "filter"):
            items = frozenset().union(*[self.items(each.tokens) for each in given[1:]])
            found = self.call_all(first, items)
            if way == "filter":
                self.decide(found | items)
            return self.make(at, found if way == "map" else items)
        if way == "super":
            names = self.frame.code.co_varnames
            owner = given[-1].tokens if given else self.read(self.place(self.frame, names[0]))
            return frozenset(("super", token) for token in owner)
        name = given[1].constant if len(given) > 1 else None
        if isinstance(name, str) and way == "getattr":
            rest = frozenset().union(*[each.tokens for each in given[2:]])
            return self.attribute(first, name) | rest
        self.put(first, every - first)
        return self.unknown(every)

    def call_all(self, functions: Tokens, given: Tokens) -> Tokens:
        """Return what functions among some values give of any items."""
        found: set[Any] = set()
        for token in functions:
            if token[0] != "is" or callable(self.things[token]):
                found |= self.call_one(token, "", [Value(given)] * 2, {}, _NONE, -1)
        return frozenset(found)
