"""What calls of functions give that are not followed: Python's, NumPy's, and this package's."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.jit.front.contents import rows
from numgrad.jit.front.frames import Frames, each_of, every_of
from numgrad.jit.front.guards import is_a
from numgrad.jit.front.meaning import Tokens, Value
from numgrad.jit.front.values import ANY, BESIDE, NUMBER, TENSOR

__all__ = ["BUILTINS", "OF_ARRAYS", "OF_TENSORS", "LibraryCalls"]

_NONE: Tokens = frozenset()

# fmt: off
# Methods of arrays that return something of Python's.
_OF_PYTHON = frozenset(("item", "tolist", "tobytes", "tofile", "dump", "dumps", "data", "ctypes"))
OF_TENSORS = frozenset(n for n in dir(Tensor) if not n.startswith("__")) - _OF_PYTHON
OF_ARRAYS = frozenset(n for n in dir(np.ndarray) if not n.startswith("__")) - _OF_PYTHON
# Functions of NumPy that do, of arrays.
_ASKS = frozenset((
    "allclose", "array_equal", "array_equiv", "array_repr", "array_str", "array2string",
    "base_repr", "binary_repr", "count_nonzero", "format_float_positional", "iterable",
    "format_float_scientific", "save", "savetxt", "savez", "may_share_memory", "shares_memory",
))
# Methods and functions of ours that return no tensors.
_NO_TENSORS = BESIDE | frozenset((
    "is_tensor", "type", "get_device", "data_ptr", "storage_offset", "broadcast_shapes",
    "result_type", "can_cast", "promote_types", "get_default_dtype", "finfo", "iinfo",
    "is_same_size",
    "dim_order", "is_grad_enabled", "is_nonzero", "equal", "allclose", "is_conj", "is_neg",
    "is_inference", "is_view", "is_set_to", "is_shared", "is_pinned", "untyped_storage", "storage",
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

    def call_tensor(self, name: str, every: Tokens) -> Tokens:
        """Return what a method of a tensor gives, or a function of this package.

        A parameter may be asked for its number, and nothing tells of that: so what NumPy computed,
        and what is as short as a list of dims, may decide.
        """
        for token in self.with_contents(every):
            thing: Any = self.things.get(token)
            is_array = is_a(thing, np.ndarray)
            is_short = is_array and (not thing.ndim or thing.dtype.kind in "iub")
            if token[0] == "of" or (is_short and thing.size <= 64):
                self.decide((token,))
        self.escape(frozenset(filter(self.is_called, every)))
        return frozenset((NUMBER if name in _NO_TENSORS else TENSOR,))

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
        name = getattr(thing, "__name__", "")
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
            if name in _ASKS:
                self.use_all(every)
            self.decide(self.with_contents(every))
            return self.computed(frozenset((NUMBER,)), *each_of(given, named, spread))
        if package == "numgrad":
            inner = self.reach(thing)[1] if is_a(thing, FunctionType) else []
            found = set(functions)
            for each in (*functions, *self.of_all(f for f in inner if id(f) in self.known)):
                rest = every - {each}
                found |= self.call_one(each, "", (), {}, rest, at)
            return frozenset(found) | self.call_tensor(name, every - functions)
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
            owner = given[-1].tokens if given else frozenset(self.place(self.frame, names[0]))
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
