"""`backward` and `grad`: check the arguments, start the engine, return the gradients."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from numgrad.base import dtypes
from numgrad.graph.accumulate import gradient_edge
from numgrad.graph.batched import check_batches, run_batch
from numgrad.graph.engine import run
from numgrad.graph.frames import user_frame
from numgrad.graph.modes import interceptors, is_transformed
from numgrad.graph.node import Node
from numgrad.graph.tensor import NO_EDGE, Edge, Size, Tensor, fresh

__all__ = ["GradientEdge", "backward", "grad", "roots_of"]


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor is computed: a node, and which of its outputs that was.

    Mirrors ``torch.autograd.graph.GradientEdge``. `numgrad.autograd.graph.get_gradient_edge` gives
    that of a tensor.
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


Tensors = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensors | None = None,
) -> None:
    """Compute the gradients of `tensors` and add them to the ``.grad`` of the leaves.

    Mirrors ``torch.autograd.backward``.

    Parameters
    ----------
    tensors : tensor, GradientEdge, or sequence of them
        What to differentiate.
    grad_tensors : tensor, None, or sequence of them
        The cotangent of each tensor, of its shape; None stands for 1 where a tensor has one
        element.
    retain_graph : bool, optional
        Keep what the graph saved, so that it can be run again. Defaults to `create_graph`.
    create_graph : bool
        Record the backward pass, so that gradients can be differentiated.
    inputs : tensor, GradientEdge, or sequence of them, optional
        Accumulate only into these.

    Raises
    ------
    RuntimeError
        If a tensor does not require grad; if a cotangent is missing or has the wrong shape; if the
        graph was freed by an earlier call; if a saved tensor was modified in place.

    Warns
    -----
    UserWarning
        With `create_graph`: the leaves' gradients hold graphs that lead to the leaves, so that only
        Python's garbage collector frees them.

    >>> import numgrad as ng
    >>> x = ng.tensor([1.0, 2.0], requires_grad=True)
    >>> ng.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if interceptors and is_transformed():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "functorch.grad or functorch.vjp instead or call backward() outside of functorch "
            "transforms."
        )
    if create_graph:
        _warn_of_cycle()
    outputs = _as_tuple(tensors)
    if inputs is not None:
        inputs = _as_tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = roots_of(outputs, grad_tensors)
    keep_graph = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        run(roots, keep_graph=keep_graph, create_graph=create_graph)
        return
    for tensor in inputs:
        if isinstance(tensor, Tensor) and not (tensor.is_leaf and tensor.requires_grad):
            tensor.retain_grad()  # where the engine leaves the gradient of a non-leaf
    edges = [_input_edge(tensor) for tensor in inputs]
    run(roots, keep_graph=keep_graph, create_graph=create_graph, inputs=edges)


def _warn_of_cycle() -> None:
    """Tell the user's line that a leaf will hold a graph that leads to it."""
    message = (
        "Using backward() with create_graph=True will create a reference cycle between the "
        "parameter and its gradient which can cause a memory leak. We recommend using "
        "autograd.grad when creating the graph to avoid this. If you have to use this function, "
        "make sure to reset the .grad fields of your parameters to None after use to break the "
        "cycle and avoid the leak."
    )
    frame = user_frame()
    if frame is None:
        warnings.warn(message, UserWarning, stacklevel=3)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    file, module = frame.f_code.co_filename, frame.f_globals.get("__name__")
    warnings.warn_explicit(message, UserWarning, file, frame.f_lineno, module, registry)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """Return the gradients of the sum of `outputs` with respect to `inputs`.

    Mirrors ``torch.autograd.grad``. No ``.grad`` changes.

    Parameters
    ----------
    outputs : tensor, GradientEdge, or sequence of them
        What to differentiate.
    inputs : tensor, GradientEdge, or sequence of them
        With respect to what; leaves or not.
    grad_outputs : tensor, None, or sequence of them
        The cotangent of each output, of its shape; None stands for 1 for outputs of one element.
    retain_graph, create_graph : bool
        As in `backward`.
    allow_unused : bool, optional
        Give None for inputs that the outputs do not depend on, instead of raising. Defaults to
        `materialize_grads`.
    is_grads_batched : bool
        The cotangents have one dimension more, in front, and so have the results: one backward
        pass runs for each entry.
    materialize_grads : bool
        Give zeros instead of None.

    Returns
    -------
    tuple of Tensor
        One gradient for each input, of its shape and dtype.

    Raises
    ------
    RuntimeError
        As `backward`; and if an input is unused and that is not allowed.

    >>> import numgrad as ng
    >>> x = ng.tensor(3.0, requires_grad=True)
    >>> (dy,) = ng.autograd.grad(x**2, x, create_graph=True)
    >>> ng.autograd.grad(dy, x)
    (tensor(2.),)
    """
    targets = _as_tuple(inputs)
    sources = _as_tuple(outputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    keep_graph = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        results = _batched(sources, grad_outputs, targets, keep_graph, create_graph)
    else:
        results = run(
            roots_of(sources, grad_outputs),
            keep_graph=keep_graph,
            create_graph=create_graph,
            inputs=[_input_edge(tensor) for tensor in targets],
            accumulate=False,
        )
    for position, (tensor, result) in enumerate(zip(targets, results, strict=True)):
        if result is not None:
            continue
        if not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {position} appears to not have been used in "
                "the graph. Set allow_unused=True if this is the desired behavior."
            )
        if isinstance(tensor, GradientEdge) and materialize_grads:
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge"
            )
        if materialize_grads:
            results[position] = fresh(np.zeros(tensor._array.shape, tensor._array.dtype))
    return tuple(results)  # type: ignore[arg-type]


def _batched(
    outputs: tuple[Any, ...],
    grad_outputs: Any,
    inputs: tuple[Any, ...],
    keep_graph: bool,
    create_graph: bool,
) -> list[Tensor | None]:
    """Run one backward pass for each entry of batched cotangents and stack the results."""
    if grad_outputs is None:
        grad_outputs = (None,) * len(outputs)
    batches = _as_tuple(grad_outputs)
    check_batches(outputs, batches)
    roots = roots_of(outputs, [batch[0] for batch in batches])
    fitting = [
        batch if batch._array.dtype == first._array.dtype else batch.to(first.dtype)
        for batch, (_, first) in zip(batches, roots, strict=True)
    ]
    return run_batch(
        [edge for edge, _ in roots],
        fitting,
        [_input_edge(tensor) for tensor in inputs],
        keep_graph=keep_graph,
        create_graph=create_graph,
    )


def _as_tuple(tensors: Any) -> tuple[Any, ...]:
    if type(tensors) is tuple:
        return tensors
    return (tensors,) if isinstance(tensors, (Tensor, GradientEdge)) else tuple(tensors)


def _input_edge(tensor: Any) -> Edge:
    """Return where the gradient of an input arrives, or raise if it takes none."""
    if isinstance(tensor, GradientEdge):
        return tensor.node, tensor.output_nr
    if not isinstance(tensor, Tensor):
        raise RuntimeError(
            f"all inputs have to be Tensors or GradientEdges, but got {type(tensor).__name__}"
        )
    edge = gradient_edge(tensor)
    if edge is NO_EDGE:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge


def _cotangent(position: int, output: Any, gradient: Any) -> Tensor:
    """Return the cotangent of a tensor, or of an edge, checked and in its dtype."""
    if isinstance(output, GradientEdge):
        meta = output.node.output_meta(output.output_nr)
        if meta is None:  # nobody knows what would fit
            if isinstance(gradient, Tensor):
                return gradient
            meta = ((), np.dtype(np.float32))
        shape, dtype = meta
    else:
        if gradient is None and not output.requires_grad:
            _raise_no_grad(position)
        shape, dtype = output._array.shape, output._array.dtype
    if gradient is None:
        if shape and Size(shape).numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if dtype.kind == "c":
            raise RuntimeError(
                "grad can be implicitly created only for real scalar outputs but got "
                f"{dtypes.of_numpy(dtype)!r}"
            )
        return fresh(np.ones(shape, dtype))
    if not isinstance(gradient, Tensor):
        raise TypeError(
            f"gradients can be either Tensors or None, but got {type(gradient).__name__}"
        )
    if gradient._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {gradient.shape} and "
            f"output[{position}] has a shape of {Size(shape)}."
        )
    if gradient._array.dtype != dtype:
        kind = dtypes.of_numpy(dtype)
        if (gradient._array.dtype.kind == "c") != (dtype.kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same "
                f"dtype. Mismatch in dtype: grad_output[{position}] has a dtype of "
                f"{gradient.dtype!r} and output[{position}] has a dtype of {kind!r}."
            )
        cast: Tensor = gradient.to(kind)
        return cast
    return gradient


def roots_of(outputs: tuple[Any, ...], grad_tensors: Any) -> list[tuple[Edge, Tensor]]:
    """Return where the engine starts, each edge with its checked cotangent."""
    if type(grad_tensors) is Tensor and len(outputs) == 1 and isinstance(outputs[0], Tensor):
        (output,) = outputs  # nearly every call
        array, given_array = output._array, grad_tensors._array
        if given_array.shape == array.shape and given_array.dtype is array.dtype:
            edge = gradient_edge(output)
            if edge is not NO_EDGE:
                return [(edge, grad_tensors)]
    if grad_tensors is None:
        given: Sequence[Any] = (None,) * len(outputs)
    elif isinstance(grad_tensors, Tensor):
        given = (grad_tensors,)
    else:
        given = tuple(grad_tensors)
    cotangents = []
    # What is no gradient at all is found before how many there are, as in PyTorch.
    for position, (output, gradient) in enumerate(zip(outputs, given)):  # noqa: B905 - see below
        array = None
        if isinstance(output, Tensor):
            array = output._array
        elif not isinstance(output, GradientEdge):
            raise AssertionError("Expected output to be a torch.Tensor")
        if not (
            array is not None
            and type(gradient) is Tensor
            and gradient._array.shape == array.shape
            and gradient._array.dtype is array.dtype
        ):
            gradient = _cotangent(position, output, gradient)
        cotangents.append(gradient)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    edges = [
        (output.node, output.output_nr)
        if isinstance(output, GradientEdge)
        else gradient_edge(output)
        for output in outputs
    ]
    for position, edge in enumerate(edges):
        if edge is NO_EDGE:
            _raise_no_grad(position)
    return list(zip(edges, cotangents, strict=True))


def _raise_no_grad(position: int) -> None:
    raise RuntimeError(
        f"element {position} of tensors does not require grad and does not have a grad_fn"
    )
