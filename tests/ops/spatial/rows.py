"""Rows of convolutions, pooling and resampling in the tables that walk the catalogue."""

from __future__ import annotations

_POOLS = {
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
PARTS_FOR_REAL = _POOLS
NODES = {
    "torch.conv2d(m.reshape(1, 1, 3, 3), n.reshape(1, 1, 3, 3), padding=1)": (
        "ConvolutionBackward0",
        "",
    ),
}
