"""Random number generators: seeds and states, in PyTorch's words over NumPy's generator.

The numbers come from NumPy's PCG64, so a seed gives the same ones in every run and on every
platform, but not the ones that PyTorch gives for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.modes.state import modes
from numgrad.graph.recorder import is_traced_array
from numgrad.graph.tensor import Tensor, wrap
from numgrad.ops.calls.steps import made_array
from numgrad.ops.core.registry import FUNCTIONS, public
from numgrad.ops.signatures.argument_parser import bind
from numgrad.ops.signatures.devices import check_device
from numgrad.ops.signatures.kinds import KINDS, NAMES, OWNERS, Kind, type_name
from numgrad.ops.signatures.numbers import BEYOND_INT64
from numgrad.ops.signatures.signature import parse

__all__ = [
    "Draw",
    "Generator",
    "default_generator",
    "drawn",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]

_CONSTRUCTOR = (parse("Generator(device device='cpu')"),)
_FRESH_SEED = 67280421310721  # PyTorch's, for generators that were not given one
_MASK = 2**64 - 1
# A state in bytes: the state and the increment of PCG64, a flag and the 32 bits that it keeps for
# the next 32-bit number, and the seed.
_FIELDS = (("state", 16), ("inc", 16), ("has_uint32", 4), ("uinteger", 4), ("seed", 8))
_STATE_SIZE = sum(size for _, size in _FIELDS)


class Generator:
    """A stream of random numbers; threads may draw from one at the same time.

    Parameters
    ----------
    device : {"cpu"}
        There is no other.

    >>> import numgrad as ng
    >>> generator = ng.Generator().manual_seed(0)
    >>> first = ng.rand(3, generator=generator)
    >>> bool((first == ng.rand(3, generator=generator.manual_seed(0))).all())
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        bind(_CONSTRUCTOR, (device,), {})
        check_device(device)
        self._start(_FRESH_SEED)

    def _start(self, seed: int) -> None:
        self._seed = seed
        self._numpy = np.random.Generator(np.random.PCG64(seed))

    @property
    def device(self) -> str:
        """Where the generator is: always ``"cpu"``."""
        return "cpu"

    @property
    def numpy(self) -> np.random.Generator:
        """NumPy's generator, which the numbers are drawn from."""
        self._refuse_traced("its generator of NumPy's")
        return self._numpy

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to a seed, and return the generator.

        Parameters
        ----------
        seed : int
            From -2**63 to 2**64 - 1; negative ones count from 2**64.

        Raises
        ------
        RuntimeError
            If it is no integer.
        ValueError
            If it is out of range.
        """
        if not isinstance(seed, (int, np.integer)):
            raise RuntimeError(f"manual_seed expected a long, but got {type_name(seed)}")
        if not -(2**63) <= seed <= _MASK:
            raise ValueError(BEYOND_INT64)
        seed = int(seed) & _MASK
        if modes.trace is None:
            self._start(seed)
        else:
            numbers = np.random.Generator(np.random.PCG64(seed))
            snapshot = seed, numbers, numbers.bit_generator.state
            modes.trace.set_random_state(self, snapshot)
        return self

    def seed(self) -> int:
        """Start a stream that nobody can foresee, and return its seed."""
        self._refuse_traced("a new seed")
        self._start(secrets.randbits(64))
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed that the stream was started with."""
        self._refuse_traced("its seed")
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state as a tensor of bytes, for `set_state`."""
        self._refuse_traced("its state")
        state: Any = self._numpy.bit_generator.state
        values = {**state, **state["state"], "seed": self._seed}
        parts = [int(values[name]).to_bytes(size, "little") for name, size in _FIELDS]
        return wrap(np.frombuffer(b"".join(parts), np.uint8).copy())

    def set_state(self, new_state: Tensor) -> Generator:
        """Go on where a generator was when `get_state` returned `new_state`.

        Raises
        ------
        TypeError
            If it is no tensor of bytes.
        RuntimeError
            If it is not as long as a state is.
        """
        self._refuse_traced("another state")
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type_name(new_state)}")
        if new_state._array.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        data = new_state._array.tobytes()
        if len(data) != _STATE_SIZE:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE_SIZE} but found the input RNG "
                f"state size to be {len(data)}"
            )
        values: dict[str, Any] = {}
        for name, size in _FIELDS:
            values[name], data = int.from_bytes(data[:size], "little"), data[size:]
        self._start(values.pop("seed"))
        inner = {"state": values.pop("state"), "inc": values.pop("inc")}
        self._numpy.bit_generator.state = {"bit_generator": "PCG64", "state": inner, **values}
        return self

    @classmethod
    def at(cls, snapshot: Any) -> Generator:
        """Return a new generator where another was."""
        seed, _, state = snapshot
        found = cls.__new__(cls)
        found._start(seed)
        found._numpy.bit_generator.state = state
        return found

    def words(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Return the state in six words, as `numgrad.kernels.random` has it, and the seed in one.

        It is for who holds the lock of NumPy's generator.
        """
        state: Any = self._numpy.bit_generator.state
        inner = state["state"]
        parts = [inner["state"].to_bytes(16, "little"), inner["inc"].to_bytes(16, "little")]
        kept = state["has_uint32"] | state["uinteger"] << 32
        parts += [kept.to_bytes(8, "little"), self._seed.to_bytes(8, "little")]
        return np.frombuffer(b"".join(parts), "<u8").astype(np.uint64)

    def set_words(self, words: np.ndarray[Any, Any]) -> None:
        """Go on where a generator was that `words` are from; who calls holds the lock."""
        low, high, inc_low, inc_high, kept, seed = words.tolist()
        self._seed = seed
        self._numpy.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": high << 64 | low, "inc": inc_high << 64 | inc_low},
            "has_uint32": kept & 1,
            "uinteger": kept >> 32,
        }

    def snapshot(self) -> Any:
        """Return where the generator is, for `restore`; quicker than `get_state`.

        Two are equal if nothing was drawn in between.
        """
        if modes.trace is not None:
            return modes.trace.random_state(self)
        return self._seed, self._numpy, self._numpy.bit_generator.state

    def restore(self, snapshot: Any) -> None:
        """Go on where the generator was when `snapshot` was called."""
        if modes.trace is not None:
            modes.trace.set_random_state(self, snapshot)
            return
        self._seed, self._numpy, state = snapshot
        self._numpy.bit_generator.state = state

    def _refuse_traced(self, what: str) -> None:
        """Raise if this generator's state has no numbers, because a function is traced."""
        if modes.trace is not None:
            state: Any = modes.trace.random_state(self)
            if is_traced_array(state):
                state.storage.recorder.refuse_generator(what)

    def clone_state(self) -> Generator:
        """Return another generator in the same state."""
        return Generator().set_state(self.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.get_state()._array.tobytes(),)


def _restore(state: bytes) -> Generator:
    return Generator().set_state(wrap(np.frombuffer(state, np.uint8)))


default_generator = Generator()
default_generator.seed()
FUNCTIONS["Generator"] = Generator
KINDS["generator"] = Kind(
    "torch.Generator",
    "Generator",
    "Generator",
    "not isinstance({0}, Generator)",
    lambda value: isinstance(value, Generator),
)
NAMES["Generator"] = Generator
OWNERS[Generator] = "torch._C"


class Draw(Protocol):
    """What numbers are drawn: of which distribution, in which dtype."""

    @property
    def dtype(self) -> dtypes.dtype:
        """The dtype of the numbers."""

    def numbers(self, source: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """Return an array of numbers from NumPy's generator."""

    def maker(self, generator: Generator, shape: tuple[int, ...]) -> Callable[[], Any]:
        """Return what draws such an array each time, from a generator as it is then."""


def drawn(
    draw: Draw,
    generator: Generator | None,
    shape: tuple[int, ...],
    beside: Sequence[Any] = (),
) -> Any:
    """Return an array of random numbers; everything that is drawn comes this way.

    Parameters
    ----------
    draw : Draw
    generator : Generator, optional
    shape : tuple of int
    beside : sequence of array
        Those of tensors that the numbers are going to meet.
    """
    source = default_generator if generator is None else generator
    if modes.trace is None:
        return made_array(draw.maker(source, shape))
    return modes.trace.draw(draw, source, shape, beside)


@public(method=False)
def manual_seed(seed: Any) -> Generator:
    """Start the default generator's stream that belongs to a seed, and return that generator.

    The numbers are the same in every run, but not those that PyTorch draws for the seed.

    Parameters
    ----------
    seed : int
        From -2**63 to 2**64 - 1.

    Raises
    ------
    ValueError
        If it is out of range.

    >>> import numgrad as ng
    >>> ng.manual_seed(0).initial_seed()
    0
    """
    return default_generator.manual_seed(int(seed))


@public(method=False)
def seed() -> int:
    """Start a stream of the default generator that nobody can foresee, and return its seed.

    >>> import numgrad as ng
    >>> ng.seed() == ng.initial_seed()
    True
    """
    return default_generator.seed()


@public(method=False)
def initial_seed() -> int:
    """Return the seed that the default generator's stream was started with.

    >>> import numgrad as ng
    >>> _ = ng.manual_seed(7)
    >>> ng.initial_seed()
    7
    """
    return default_generator.initial_seed()


@public(method=False)
def get_rng_state() -> Tensor:
    """Return the state of the default generator as a tensor of bytes.

    >>> import numgrad as ng
    >>> state = ng.get_rng_state()
    >>> first = ng.rand(3)
    >>> ng.set_rng_state(state)
    >>> bool((first == ng.rand(3)).all())
    True
    """
    return default_generator.get_state()


@public(method=False)
def set_rng_state(new_state: Tensor) -> None:
    """Let the default generator go on where it was when `get_rng_state` returned `new_state`.

    Raises
    ------
    TypeError
        If it is no tensor of bytes.
    RuntimeError
        If it is not as long as a state is.

    >>> import numgrad as ng
    >>> ng.set_rng_state(ng.get_rng_state())
    """
    default_generator.set_state(new_state)
