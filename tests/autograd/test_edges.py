"""Edges in place of tensors in `backward` and `grad`; the same here as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def values(lib: Any) -> Any:
    """Return a leaf, and what is computed of it in three steps."""
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    z = y.exp()
    return x, y, z, z.sum()


def edge(lib: Any, tensor: Any) -> Any:
    return lib.autograd.graph.get_gradient_edge(tensor)


def test_an_edge_is_a_node_and_an_output(lib: Any, values: Any) -> None:
    x, y, _, _ = values
    found = edge(lib, y)
    assert found.node is y.grad_fn and found.output_nr == 0 and found.ownership_token is None
    assert edge(lib, x).node is y.grad_fn.next_functions[0][0]
    assert edge(lib, x.unbind()[1]).output_nr == 1
    assert isinstance(found.node, lib.autograd.graph.Node)
    assert isinstance(found, lib.autograd.graph.GradientEdge)


def test_grad_takes_edges(lib: Any, values: Any) -> None:
    x, y, z, s = values
    expected = lib.autograd.grad(s, [y, x], retain_graph=True)
    for outputs, given in [
        (s, None),
        (edge(lib, s), None),
        (edge(lib, z), lib.ones(2)),
        ([edge(lib, z)], [lib.ones(2)]),
    ]:
        found = lib.autograd.grad(outputs, [edge(lib, y), edge(lib, x)], given, retain_graph=True)
        assert [g.tolist() for g in found] == [g.tolist() for g in expected]
    (single,) = lib.autograd.grad(s, edge(lib, x))
    assert single.tolist() == expected[1].tolist()


def test_backward_takes_edges(lib: Any, values: Any) -> None:
    x, y, z, s = values
    expected = lib.autograd.grad(s, x, retain_graph=True)[0].tolist()

    def gradient(*args: Any, **kwargs: Any) -> Any:
        x.grad = None
        lib.autograd.backward(*args, retain_graph=True, **kwargs)
        return None if x.grad is None else x.grad.tolist()

    assert gradient(edge(lib, s)) == expected
    assert gradient(edge(lib, z), lib.ones(2)) == expected
    assert gradient(s, inputs=edge(lib, x)) == expected
    assert gradient([edge(lib, s)], inputs=[edge(lib, x)]) == expected
    assert gradient(s, inputs=[edge(lib, y)]) is None


def test_the_tensor_need_not_exist_any_more(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    found = edge(lib, (x * x).sum() * 2)
    lib.autograd.backward(found)
    assert x.grad.tolist() == [4.0, 8.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x * 2,
        lambda x: x + 1,
        lambda x: x.exp() + x.double(),
        lambda x: x.reshape(2, 1).t()[0],
        lambda x: (x * 1).mul_(2),
        lambda x: x,
    ],
)
def test_cotangents_of_edges_are_checked(lib: Any, make: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    root = edge(lib, make(x))
    with pytest.raises(RuntimeError, match="^grad can be implicitly created only for scalar outp"):
        lib.autograd.backward(root)
    with pytest.raises(RuntimeError) as error:
        lib.autograd.backward(root, lib.ones(3))
    assert str(error.value) == (
        "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a "
        "shape of torch.Size([2])."
    )


def test_what_has_no_edge(lib: Any, values: Any) -> None:
    _, y, _, s = values
    with pytest.raises(RuntimeError) as error:
        edge(lib, lib.ones(1))
    assert str(error.value) == (
        "It is not possible to get the gradient edge for a Tensor that does not require gradients"
    )
    other = edge(lib, y * 1)
    with pytest.raises(RuntimeError, match="^The differentiated Tensor at index 0 appears to not"):
        lib.autograd.grad(s, [other], retain_graph=True)
    with pytest.raises(
        RuntimeError, match="^materialize_grads cannot be used when the given input"
    ):
        lib.autograd.grad(s, [other], retain_graph=True, materialize_grads=True)
    with pytest.raises(AssertionError, match="^Expected output to be a torch.Tensor$"):
        lib.autograd.backward([3])


def test_a_write_that_nobody_noticed_can_be_told(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    z = x * 1
    y = z * z
    lib.autograd.graph.increment_version(z)
    lib.autograd.graph.increment_version([z, z])
    assert z._version == 3
    with pytest.raises(RuntimeError, match="is at version 3; expected version 0 instead"):
        y.sum().backward()


def test_nodes_have_notes_and_tensors_know_whether_they_are_views(lib: Any) -> None:
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    assert y.grad_fn.metadata == {}
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    assert x[:1]._is_view() and not x._is_view() and x[:1]._base is x
