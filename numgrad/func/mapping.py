"""vmap: a function of one example as one of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from numgrad.base import pytree
from numgrad.batching.batcher import Batcher
from numgrad.batching.trees import spread
from numgrad.graph.tensor import Tensor
from numgrad.ops.creation.from_data import from_numpy
from numgrad.ops.movement.casts import expand_to
from numgrad.ops.movement.joining import cat

__all__ = ["vmap"]

RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return the function that maps `func` over a dim of its arguments.

    Mirrors ``torch.func.vmap`` and ``jax.vmap``. It gives what a loop over the dim would, stacked,
    but every operation runs once, on all examples.

    Parameters
    ----------
    func : callable
        A function of one example. It takes and returns pytrees of tensors.
    in_dims : int, None or nested structure of these
        For the positional arguments, the dim to map over; None for what is the same for all
        examples. A tuple has one for each argument, which may be a pytree in turn; one for a whole
        pytree counts for all tensors in it. Keyword arguments are the same for all.
    out_dims : int, None or nested structure of these
        Where the dim stands in the results; None for a result that is the same for all examples.
    randomness : str
        What functions such as `randn` do in `func`: "error", raise; "different", draw numbers for
        each example; "same", draw numbers once for all.
    chunk_size : int, optional
        How many examples to compute at once; by default all.

    Returns
    -------
    callable
        Takes the arguments of `func`, with the dim.

    Raises
    ------
    ValueError
        From the returned function: if `in_dims` or `out_dims` do not fit what there is, the lengths
        of the dims differ, or `func` returns anything but tensors.
    RuntimeError
        If `func` asks for the numbers of an example (``item``, a branch, a mask as an index), or
        writes numbers that differ between examples to a tensor from outside.

    Notes
    -----
    It nests, and it goes with all other transformations, inside and outside: ``vmap(grad(f))``
    gives the gradients of the examples, one by one. A tensor that `func` makes (``zeros(3)``) may
    be written to, also with what differs between examples; PyTorch refuses that.

    Examples
    --------
    >>> import numgrad as ng
    >>> x = ng.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> ng.func.vmap(ng.dot)(x, x)
    tensor([ 5., 25.])
    >>> ng.func.vmap(ng.func.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))(x[0], x)
    tensor([[10., 20.],
            [66., 88.]])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, spec, size = _read(func, in_dims, args)
        if chunk_size is None or size <= chunk_size:
            call = _Call(func, spec, kwargs, out_dims, randomness)
            return call.run(leaves, dims, size)
        parts = []
        for start in range(0, size, chunk_size):
            count = min(chunk_size, size - start)
            own = [
                leaf if dim is None else leaf.narrow(dim, start, count)
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            call = _Call(func, spec, kwargs, out_dims, randomness)
            parts.append(call.run(own, dims, count, call.flat))
        return call.joined(parts)

    return mapped


def _name(func: Any) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _read(
    func: Any, in_dims: Any, args: tuple[Any, ...]
) -> tuple[list[Any], list[int | None], pytree.TreeSpec, int]:
    """Return the leaves of the arguments, the dim of each, their structure, and the size."""
    name = _name(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a "
            "(potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = pytree.flatten(args)
    given = spread(in_dims, spec)
    start = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if given is None:
        raise ValueError(
            f"{start}in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {pytree.flatten(in_dims)[1]!r} but inputs has structure {spec!r}."
        )
    dims: list[int | None] = []
    sizes: list[int] = []
    for position, (leaf, dim) in enumerate(zip(leaves, given, strict=True)):
        if dim is None:
            dims.append(None)
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{start}Got in_dim={dim} for an input but in_dim must be either an integer "
                "dimension or None."
            )
        if isinstance(leaf, np.ndarray):
            leaves[position] = leaf = from_numpy(leaf)
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{start}Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
                "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        ndim = leaf._array.ndim
        if not -ndim <= dim < ndim:
            raise ValueError(
                f"{start}Got in_dim={dim} for some input, but that input is a Tensor of "
                f"dimensionality {ndim} so expected in_dim to satisfy -{ndim} <= in_dim < {ndim}."
            )
        dims.append(dim % ndim)
        sizes.append(leaf._array.shape[dim])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return leaves, dims, spec, sizes[0]


class _Call:
    """One call of a mapped function, or of a chunk."""

    def __init__(
        self,
        func: Callable[..., Any],
        spec: pytree.TreeSpec,
        kwargs: dict[str, Any],
        out_dims: Any,
        randomness: str,
    ) -> None:
        self.func = func
        self.spec = spec
        self.kwargs = kwargs
        self.out_dims = out_dims
        self.randomness = randomness
        self.output_spec: Any = None
        self.dims: list[Any] = []

    def flat(self, leaves: list[Tensor]) -> Any:
        """Return the leaves of the results as they are."""
        return leaves

    def run(
        self,
        leaves: Sequence[Any],
        dims: Sequence[int | None],
        size: int,
        finish: Callable[[list[Tensor]], Any] | None = None,
    ) -> Any:
        """Run the function on all examples, and return its results with their dim."""
        batcher = Batcher(size, self.randomness)
        first = [
            leaf if dim is None or dim == 0 else leaf.movedim(dim, 0)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        with batcher.open():
            inside = [
                leaf if dim is None else batcher.inside(leaf, True)
                for leaf, dim in zip(first, dims, strict=True)
            ]
            output = self.func(*pytree.unflatten(self.spec, inside), **self.kwargs)
            found = self._outputs(batcher, output)
        results = [
            self._placed(part, dim, size) for part, dim in zip(found, self.dims, strict=True)
        ]
        if finish is not None:
            return finish(results)
        return pytree.unflatten(self.output_spec, results)

    def _outputs(self, batcher: Batcher, output: Any) -> list[Any]:
        """Return what the results are outside, and check them and their dims."""
        name = _name(self.func)
        found, self.output_spec = pytree.flatten(output)
        for each in found:
            if not isinstance(each, Tensor):
                raise ValueError(
                    f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(each)}. "
                    "Did you mean to set out_dims= to None for output?"
                )
        dims = self.out_dims
        kinds = pytree.leaves(dims) if dims is not None else []
        if not all(each is None or isinstance(each, int) for each in kinds):
            raise ValueError(
                f"vmap({name}, ..., out_dims={dims}): `out_dims` must be an int, None or a python "
                "collection of ints representing where in the outputs the vmapped dimension should "
                "appear."
            )
        given = spread(dims, self.output_spec)
        if given is None:
            structure = pytree.flatten(dims)[1]
            raise ValueError(
                f"vmap({name}, ..., out_dims={dims})(<inputs>): out_dims is not compatible with "
                f"the structure of `outputs`. out_dims has structure {structure!r} but outputs has "
                f"structure {self.output_spec!r}."
            )
        self.dims = given
        parts = [batcher.part(each) for each in found]
        for part, dim in zip(parts, given, strict=True):
            if dim is None and part.batched:
                raise ValueError(
                    f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is "
                    "None"
                )
        return parts

    def _placed(self, part: Any, dim: int | None, size: int) -> Tensor:
        """Return a result with the examples' dim where it belongs."""
        tensor: Tensor = part.tensor
        if dim is None:
            return tensor
        if not part.batched:
            tensor = expand_to(tensor, (size, *tensor._array.shape))
        return tensor if dim == 0 else tensor.movedim(0, dim)

    def joined(self, chunks: Sequence[Sequence[Tensor]]) -> Any:
        """Return the results of chunks as one."""
        columns = zip(*chunks, strict=True)
        results = [
            column[0] if dim is None else cat(column, dim)
            for column, dim in zip(columns, self.dims, strict=True)
        ]
        return pytree.unflatten(self.output_spec, results)
