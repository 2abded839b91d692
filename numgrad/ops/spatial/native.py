"""Spatial functions of torch itself: grids by numbers of modes, convolution of sequences."""

from __future__ import annotations

from collections.abc import Sequence

from numgrad.graph.tensor import Tensor
from numgrad.ops.linalg.permuting import permute
from numgrad.ops.signatures.declared import declare
from numgrad.ops.spatial.arguments import numbers
from numgrad.ops.spatial.convolution import CONVOLUTIONS
from numgrad.ops.spatial.grids import MODES, PADDINGS, affine_grid, grid_sample
from numgrad.ops.spatial.shuffling import channel_shuffle

__all__ = ["affine_grid_generator", "conv_tbc", "native_channel_shuffle"]


@declare(
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners)",
    method=False,
)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Return the positions that affine maps send those of the elements of a result to.

    The gradient of a map is the sum of the products of g and the positions that it was applied to;
    see `nn.functional.affine_grid`.

    >>> import numgrad as ng
    >>> identity = ng.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> ng.affine_grid_generator(identity, (1, 1, 1, 2), False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    result: Tensor = affine_grid(theta, size, align_corners)
    return result


_SAMPLER = """Return what {what} are at positions, between their elements.

    The gradient is that of `nn.functional.grid_sample`.

    Parameters
    ----------
    interpolation_mode
        0 for bilinear, 1 for nearest, 2 for bicubic.
    padding_mode
        0 for zeros, 1 for border, 2 for reflection.

    >>> import numgrad as ng
    >>> ng.{name}(ng.ones({shape}), ng.zeros({places}), 0, 0, False).flatten()
    tensor([1.])
    """


def _make_sampler(name: str, dims: int, what: str) -> None:
    def rule(
        input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Tensor:
        ndim = input._array.ndim
        if dims and (ndim != dims + 2 or grid._array.ndim != ndim) and grid._array.ndim == ndim:
            raise RuntimeError(
                f"grid_sampler(): expected {dims + 2}D input and grid with same number of "
                f"dimensions, but got input with sizes {numbers(input._array.shape)} and grid "
                f"with sizes {numbers(grid._array.shape)}"
            )
        modes = ((interpolation_mode, MODES), (padding_mode, PADDINGS))
        if not all(0 <= number < len(words) for number, words in modes):
            raise RuntimeError("grid_sampler(): modes are 0, 1 or 2")
        mode, padding = (words[number] for number, words in modes)
        result: Tensor = grid_sample(input, grid, mode, padding, align_corners)
        return result

    rule.__name__ = rule.__qualname__ = f"_{name}"
    shape = ", ".join(["1"] * ((dims or 2) + 2))
    places = ", ".join(["1"] * ((dims or 2) + 1) + [str(dims or 2)])
    rule.__doc__ = _SAMPLER.format(name=name, what=what, shape=shape, places=places)
    declare(
        f"{name}(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
        "bool align_corners)",
        method=False,
    )(rule)


_make_sampler("grid_sampler", 0, "images or volumes")
_make_sampler("grid_sampler_2d", 2, "images")
_make_sampler("grid_sampler_3d", 3, "volumes")


@declare("native_channel_shuffle(Tensor input, int groups)", method=False, dispatched=True)
def native_channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return channels in another order: the first of each group, then the second ones.

    The gradient is g in the order before; see `channel_shuffle`.

    >>> import numgrad as ng
    >>> ng.native_channel_shuffle(ng.arange(4.0).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    result: Tensor = channel_shuffle(input, groups)
    return result


@declare(
    "conv_tbc(Tensor input, Tensor weight, Tensor bias, int pad=0)", method=False, dispatched=True
)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> Tensor:
    """Return the convolution of sequences whose first dim is time, the last one channels.

    The gradient is that of `conv1d`.

    Parameters
    ----------
    input : tensor of shape (time, n, channels)
    weight : tensor of shape (width, channels, out_channels)
    bias : tensor of shape (out_channels,)
    pad
        How many zeros there are at both ends.

    Raises
    ------
    RuntimeError
        If the shapes do not fit.

    >>> import numgrad as ng
    >>> x, weight = ng.arange(3.0).reshape(3, 1, 1), ng.ones(2, 1, 1)
    >>> ng.conv_tbc(x, weight, ng.zeros(1)).flatten()
    tensor([1., 3.])
    """
    if input._array.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight._array.ndim != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        )
    if bias._array.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input._array.shape[2] != weight._array.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight._array.shape[2] != bias._array.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    found = CONVOLUTIONS["conv1d"](
        permute(input, (1, 2, 0)), permute(weight, (2, 1, 0)), bias, padding=pad
    )
    return permute(found, (2, 0, 1)).contiguous()
