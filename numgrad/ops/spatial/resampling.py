"""The primitives of padding and interpolation: sums of a few elements along each of the last dims.

They are linear. PyTorch has a node for each, of its name; what they do is one thing, by tables
(`numgrad.ops.spatial.tables`), and so is their adjoint, which brings gradients back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numgrad.graph.tensor import Tensor
from numgrad.kernels.spatial.resampling import resampled, resampled_adjoint
from numgrad.ops.core.image_places import as_images_lie, gradient_like, memory_of_images
from numgrad.ops.core.places import strides_of
from numgrad.ops.core.primitive import Primitive
from numgrad.ops.spatial.tables import Recipe, table_of

__all__ = ["RESAMPLING"]

Array = np.ndarray[Any, Any]
Recipes = tuple[Recipe, ...]

# How gradients lie where images have the channels last: as these, as what comes in, or by rows.
_LIKE_INPUT = {
    "reflection_pad2d",
    "reflection_pad3d",
    "replication_pad2d",
    "replication_pad3d",
}
_LIKE_GRADIENT = {
    "upsample_nearest2d",
    "upsample_nearest_exact2d",
    "upsample_bilinear2d",
    "upsample_bilinear2d_aa",
    "upsample_trilinear3d",
}


def _tables(array: Array, tables: Recipes) -> list[Any]:
    single = array.dtype in (np.float32, np.complex64)
    return [table_of(each, np.float32 if single else np.float64) for each in tables]


def _resampled(input: Array, tables: Recipes) -> Array:
    return resampled(input, _tables(input, tables))


def _resampled_images(input: Array, tables: Recipes) -> Array:
    return as_images_lie(_resampled(input, tables), input)


def _lies(input: Array, tables: Recipes) -> Array | None:
    counts = [each.places.shape[0] for each in _tables(input, tables)]
    shape = (*input.shape[: input.ndim - len(counts)], *counts)
    return memory_of_images(shape, input.dtype, input)


def _adjoint(g_y: Array, tables: Recipes) -> Array:
    return resampled_adjoint(g_y, _tables(g_y, tables))


def _make(name: str, node: str, tables: Recipes) -> Primitive:
    """Return a primitive; `tables` are those of its samples, of dims of three elements."""

    def rule_like_input(g: Tensor, input_lies: Any, tables: Recipes) -> Any:
        return gradient_like(adjoint.apply(g, tables=tables), input_lies)

    def rule_like_gradient(g: Tensor, tables: Recipes) -> Any:
        return gradient_like(adjoint.apply(g, tables=tables), strides_of(g._array))

    def rule_by_rows(g: Tensor, tables: Recipes) -> Any:
        return adjoint.apply(g, tables=tables)

    def rule_of_adjoint(g: Tensor, tables: Recipes) -> Any:
        return primitive.apply(g, tables=tables)

    rule: Any = rule_by_rows
    if name in _LIKE_INPUT:
        rule = rule_like_input
    elif name in _LIKE_GRADIENT:
        rule = rule_like_gradient
    images = len(tables) > 1 and not name.startswith("circular")
    sizes = (3,) * len(tables)
    counts = tuple([table_of(each, np.float64).places.shape[0] for each in tables])
    primitive: Primitive = Primitive(
        name,
        f"{node}Backward0",
        _resampled_images if images else _resampled,
        ["input"],
        [rule],
        linear=True,
        lies=_lies if images else None,
        samples=[lambda make: (primitive.apply, [make(2, *sizes)], {"tables": tables})],
    )
    adjoint: Primitive = Primitive(
        f"{name}_backward",
        f"{node}BackwardBackward0",
        _adjoint,
        ["g_y"],
        [rule_of_adjoint],
        linear=True,
        samples=[lambda make: (adjoint.apply, [make(2, *counts)], {"tables": tables})],
    )
    return primitive


RESAMPLING: dict[str, Primitive] = {}
_recipe: Recipe
for _dims in (1, 2, 3):
    for _name, _recipe in (
        ("reflection_pad", ("reflect", 3, 1, 2)),
        ("replication_pad", ("replicate", 3, 2, -1)),
        ("circular_pad", ("circular", 3, 1, 2)),
        ("upsample_nearest", ("nearest", 3, 4, None)),
        ("upsample_nearest_exact", ("nearest-exact", 3, 4, None)),
    ):
        RESAMPLING[f"{_name}{_dims}d"] = _make(
            f"{_name}{_dims}d",
            "".join([part.capitalize() for part in _name.split("_")]) + f"{_dims}D",
            (_recipe,) * _dims,
        )
for _name, _node, _recipe, _dims in (
    ("upsample_linear1d", "UpsampleLinear1D", ("linear", 3, 4, None, False), 1),
    ("upsample_bilinear2d", "UpsampleBilinear2D", ("linear", 3, 2, None, True), 2),
    ("upsample_trilinear3d", "UpsampleTrilinear3D", ("linear", 3, 4, None, False), 3),
    ("upsample_bicubic2d", "UpsampleBicubic2D", ("cubic", 3, 4, None, False), 2),
    ("upsample_bilinear2d_aa", "UpsampleBilinear2DAa", ("smooth linear", 3, 2, None, False), 2),
    ("upsample_bicubic2d_aa", "UpsampleBicubic2DAa", ("smooth cubic", 3, 2, None, False), 2),
):
    RESAMPLING[_name] = _make(_name, _node, (_recipe,) * _dims)
