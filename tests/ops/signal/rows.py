"""Rows of short-time Fourier transforms in the tables that walk the catalogue: compositions."""

from __future__ import annotations

LEFT_OUT = {"stft", "istft"} | {
    f"{name}_window" for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")
}
