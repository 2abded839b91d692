"""Rows of convolutions, pooling and resampling in the tables that walk the catalogue."""

from __future__ import annotations

PARTS_FOR_REAL = {
    f"{kind}{dims}d{form}"
    for dims in (2, 3)
    for kind, form in (
        ("avg_pool", ""),
        ("avg_pool", "_backward"),
        ("adaptive_avg_pool", ""),
        ("adaptive_avg_pool", "_backward"),
        ("max_pool", "_with_indices"),
        ("adaptive_max_pool", "_with_indices"),
    )
}
# An operand of so many spatial dims.
_OF = {1: "x", 2: "x.reshape(1, 2, 3, 4)", 3: "x.reshape(1, 2, 2, 3, 2)"}
_POOL = "ceil_mode kernel_size padding self stride"
NODES = {
    "F.conv2d(m.reshape(1, 1, 3, 4), s.reshape(1, 1, 3, 3), padding=1)": (
        "ConvolutionBackward0",
        "bias_sym_sizes_opt dilation groups input output_padding padding stride transposed weight",
    ),
    "F.unfold(x, 2)": (
        "Im2ColBackward0",
        "dilation kernel_size padding self_sym_argsize_minus_1 self_sym_argsize_minus_2 stride",
    ),
    "F.fold(x.reshape(1, 4, 6), (3, 4), 2)": (
        "Col2ImBackward0",
        "dilation kernel_size padding stride",
    ),
    "F.pixel_shuffle(x.reshape(4, 2, 3), 2)": ("PixelShuffleBackward0", "upscale_factor"),
    "F.pixel_unshuffle(x.reshape(1, 4, 6), 2)": ("PixelUnshuffleBackward0", "downscale_factor"),
    "torch.channel_shuffle(x.reshape(1, 6, 2, 2), 3)": ("ChannelShuffleBackward0", "groups"),
}
for _dims in (2, 3):
    NODES |= {
        f"F.avg_pool{_dims}d({_OF[_dims]}, 2)": (
            f"AvgPool{_dims}DBackward0",
            f"{_POOL} count_include_pad divisor_override",
        ),
        f"F.adaptive_avg_pool{_dims}d({_OF[_dims]}, 2)": (
            f"AdaptiveAvgPool{_dims}DBackward0",
            "self",
        ),
        f"F.max_pool{_dims}d({_OF[_dims]}, 2)": (
            f"MaxPool{_dims}DWithIndicesBackward0",
            f"{_POOL} dilation result1",
        ),
        f"F.adaptive_max_pool{_dims}d({_OF[_dims]}, 2)": (
            f"AdaptiveMaxPool{_dims}DBackward0",
            "result1 self",
        ),
    }
_SCALES = {1: "scales", 2: "scales_h scales_w", 3: "scales_d scales_h scales_w"}
for _dims in (1, 2, 3):
    _all = f"output_size {_SCALES[_dims]} self_sym_sizes"
    for _mode, _node in (("reflect", "ReflectionPad"), ("replicate", "ReplicationPad")):
        _line = f"F.pad({_OF[_dims]}, {(1, 1) * _dims}, mode='{_mode}')"
        NODES[_line] = (f"{_node}{_dims}DBackward0", "padding self")
    for _mode, _node in (("nearest", "Nearest"), ("nearest-exact", "NearestExact")):
        _line = f"F.interpolate({_OF[_dims]}, size=5, mode='{_mode}')"
        NODES[_line] = (f"Upsample{_node}{_dims}DBackward0", _all)
for _mode, _node, _dims in (
    ("linear", "Linear1D", 1),
    ("bilinear", "Bilinear2D", 2),
    ("trilinear", "Trilinear3D", 3),
    ("bicubic", "Bicubic2D", 2),
):
    _all = f"align_corners output_size {_SCALES[_dims]} self_sym_sizes"
    NODES[f"F.interpolate({_OF[_dims]}, size=5, mode='{_mode}')"] = (
        f"Upsample{_node}Backward0",
        _all,
    )
    if _dims == 2:
        _line = f"F.interpolate({_OF[_dims]}, size=5, mode='{_mode}', antialias=True)"
        NODES[_line] = (f"Upsample{_node}AaBackward0", _all)
_NOT_READ = {"result1", "weight"}
NOT_KEPT = {
    node: " ".join(sorted(set(saved.split()) - _NOT_READ)) for node, saved in NODES.values()
}
KEPT_TOO = {"ConvolutionBackward0": "self"}
# Derivatives of derivatives, and what PyTorch makes of copies.
PARTS = {
    name.replace("Backward0", "BackwardBackward0")
    for name in NOT_KEPT
    if name.startswith(
        ("Convolution", "AvgPool", "AdaptiveAvgPool", "Reflect", "Replic", "Upsample")
    )
} | {f"CircularPad{dims}D{form}Backward0" for dims in (1, 2, 3) for form in ("", "Backward")}
# Their results lie row by row here, whichever way the input does.
LEFT_OUT = {
    "convolution",
    "channel_shuffle",
    "pixel_shuffle",
    "pixel_unshuffle",
    *(f"conv{form}{dims}d" for form in ("", "_transpose") for dims in (1, 2, 3)),
    *("adaptive_avg_pool1d", "adaptive_max_pool1d", "avg_pool1d", "max_pool1d_with_indices"),
    *(f"max_pool{dims}d" for dims in (1, 2, 3)),
}
