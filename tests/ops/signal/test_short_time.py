"""Windows, stft and istft: drawn calls beside PyTorch's, and what they mean by themselves."""

from __future__ import annotations

import warnings
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import signal as reference

import numgrad as ng

WINDOWS = ["bartlett", "blackman", "hamming", "hann", "kaiser"]
ARGUMENTS = [
    *("5", "1", "0", "-1", "2.0", "8, False", "6, True, dtype=torch.float64"),
    *("5, periodic=False", "5, dtype=torch.int64", "5, dtype=torch.complex64"),
    *("4, requires_grad=True", "7, dtype=torch.float16"),
]


def outcome(call: Any) -> list[Any]:
    """Return what a call gives: arrays and facts, or its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [*call()]
    except Exception as error:
        return [type(error).__name__, str(error).partition("\n")[0]]


def assert_same(ours: list[Any], theirs: list[Any], tolerance: float, case: Any) -> None:
    assert len(ours) == len(theirs), (case, ours, theirs)
    for one, other in zip(ours, theirs, strict=True):
        if isinstance(other, np.ndarray):
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=case)
        else:
            assert one == other, case


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_pytorchs(torch: ModuleType, name: str) -> None:
    more = {"hamming": ["5, True, 0.5", "5, True, 0.5, 0.4"], "kaiser": ["6, False, 0.5"]}
    for given in [*ARGUMENTS, *more.get(name, [])]:
        found = []
        for library in (ng, torch):

            def call(library: Any = library, given: str = given) -> Any:
                window = eval(f"torch.{name}_window({given})", {"torch": library})
                return window.detach().numpy(), str(window.dtype), window.requires_grad

            found.append(outcome(call))
        assert_same(*found, 3e-3 if "float16" in given else 1e-6, f"{name}: {given}")


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_scipys(name: str) -> None:
    for periodic in (True, False):
        more = (12.0,) if name == "kaiser" else ()
        found = getattr(ng, f"{name}_window")(9, periodic, dtype=ng.float64)
        expected = reference.get_window((name, *more) if more else name, 9, fftbins=periodic)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-15)


def drawn_call(random: Random) -> dict[str, Any]:
    n_fft = random.randint(1, 12)
    call: dict[str, Any] = {
        "n_fft": n_fft,
        "hop_length": random.choice([None, 1, 2, 3, 5, 0]),
        "win_length": random.choice([None, None, random.randint(1, n_fft), n_fft + 1]),
        "center": random.random() < 0.6,
        "normalized": random.random() < 0.5,
        "onesided": random.choice([None, None, True, False]),
        "return_complex": random.choice([True, True, True, None, False]),
        "pad_mode": random.choice(["reflect", "constant", "replicate", "circular"]),
    }
    width = n_fft if call["win_length"] is None else call["win_length"]
    if not call["center"] and random.random() < 0.4 and (n_fft - width) % 2 == 0:
        call["align_to_window"] = True  # PyTorch's reads beyond its memory where sides differ
    return call


def there_and_back(
    library: Any, numbers: Any, window: Any, given: dict[str, Any], weights: Random
) -> Any:
    """Yield the transform of numbers, its gradients, and the same of the way back."""
    x = library.from_numpy(numbers.copy())
    leaves = [x.requires_grad_()] if numbers.dtype.kind in "fc" else []
    if window is not None:
        window = library.from_numpy(window.copy()).requires_grad_()
        leaves.append(window)
    spectra = library.stft(x, window=window, **given)
    yield from (spectra.detach().numpy(), str(spectra.dtype))
    total = (spectra.abs() ** 2).sum()
    yield from (
        gradient.numpy() for gradient in library.autograd.grad(total, leaves, retain_graph=True)
    )
    if not spectra.dtype.is_complex:
        return
    same = ("n_fft", "hop_length", "win_length", "center", "normalized", "onesided")
    back = library.istft(
        spectra,
        window=window,
        return_complex=numbers.dtype.kind == "c",
        length=weights.choice([None, numbers.shape[-1]]),
        **{name: given[name] for name in same},
    )
    yield from (back.detach().numpy(), str(back.dtype))
    total = (back.abs() ** 2).sum()
    yield from (gradient.numpy() for gradient in library.autograd.grad(total, leaves))


@pytest.mark.parametrize("seed", range(4))
def test_drawn_calls_are_pytorchs(torch: ModuleType, seed: int) -> None:
    random, numbers = Random(seed), np.random.default_rng(seed)
    for turn in range(40):
        given = drawn_call(random)
        shape = (*random.choice([(), (2,)]), random.randint(6, 30))
        x = numbers.normal(size=shape).astype(random.choice(["float32", "float64", "int64"]))
        if random.random() < 0.3:
            x = x + 1j * numbers.normal(size=shape).astype(x.real.dtype)
        width = given["win_length"] or given["n_fft"]
        window = None
        if random.random() < 0.8:
            window = numbers.uniform(0.5, 1, width).astype(random.choice(["float32", "float64"]))
        found = [
            outcome(lambda: there_and_back(library, x, window, given, Random(turn)))
            for library in (ng, torch)
        ]
        assert_same(*found, 2e-3, f"{given}, {x.dtype}, {shape}")


def test_a_signal_comes_back() -> None:
    x = ng.randn(2, 50, dtype=ng.float64, generator=ng.Generator().manual_seed(0))
    window = ng.hann_window(12, dtype=ng.float64)
    spectra = x.stft(12, 3, window=window, return_complex=True)
    np.testing.assert_allclose(spectra.istft(12, 3, window=window, length=50), x, atol=1e-13)


def test_derivatives_of_every_order_are_right() -> None:
    generator = ng.Generator().manual_seed(1)
    x = ng.randn(9, dtype=ng.float64, generator=generator).requires_grad_()
    window = ng.rand(4, dtype=ng.float64, generator=generator).add_(0.5).requires_grad_()

    def there(x: Any, window: Any) -> Any:
        return ng.view_as_real(ng.stft(x, 4, 2, window=window, return_complex=True))

    def back(x: Any, window: Any) -> Any:
        spectra = ng.stft(x, 4, 2, window=window, return_complex=True)
        return ng.istft(spectra * spectra.abs(), 4, 2, window=window)

    for function in (there, back):
        assert ng.autograd.gradcheck(function, (x, window), check_forward_ad=True)
        assert ng.autograd.gradgradcheck(function, (x, window))


@pytest.mark.usefixtures("traced")
def test_compiled_and_batched_calls_are_eager_ones() -> None:
    x = ng.randn(3, 20, dtype=ng.float64, generator=ng.Generator().manual_seed(2))
    window = ng.hann_window(6, dtype=ng.float64)

    def power(x: Any) -> Any:
        spectra = ng.stft(x, 6, 2, window=window, return_complex=True)
        return ng.istft(spectra * spectra.abs(), 6, 2, window=window)

    expected = ng.stack([power(row) for row in x])
    np.testing.assert_allclose(ng.jit(power)(x), expected, rtol=1e-12)
    np.testing.assert_allclose(ng.vmap(power)(x), expected, rtol=1e-12)
    slope = ng.func.grad(lambda x: power(x).square().sum())
    np.testing.assert_allclose(ng.jit(slope)(x), slope(x), rtol=1e-9)


@pytest.mark.parametrize(
    "line",
    [
        *("torch.istft(S[0], 4, window=w)", "torch.istft(S.real, 4, window=w)"),
        *("torch.istft(S, 5, window=w)", "torch.istft(S, 4, 5, window=w)"),
        *("torch.istft(S, 4, window=w[:2])", "torch.istft(S, 6, window=torch.ones(6))"),
        *("torch.istft(S, 4, window=w, onesided=False)", "torch.istft(S[None, None], 4, window=w)"),
        *("torch.istft(S[:, :0], 4, window=w)", "torch.istft(S, 4, window=w * 0)"),
        *("torch.istft(S, 4, window=w, center=False)", "torch.istft(S, 4, window=w + 0j)"),
        *("torch.istft(S, 4, window=w, return_complex=True)", "torch.stft(x, 4, window=w)"),
        *("torch.stft(x, 4, return_complex=True)", "torch.istft(S, 4)"),
        *("torch.stft(x, 4, window=w, return_complex=False)", "torch.istft(S, 4, length=30)"),
        "torch.stft(x, 4, window=w, return_complex=True, align_to_window=True)",
        "torch.stft(x, 4, window=w, return_complex=True, pad_mode='none')",
    ],
)
def test_words_are_pytorchs(torch: ModuleType, line: str) -> None:
    said = []
    for library in (ng, torch):
        x, w = library.arange(10.0), library.hann_window(4)
        S = library.stft(x, 4, window=w, return_complex=True)
        call = eval(f"lambda: [str({line}.shape)]", {"torch": library, "x": x, "w": w, "S": S})
        said.append(outcome(call))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, w, S: ng.stft(x, 4, return_complex=True), "known to cause spectral leakage"),
        (lambda x, w, S: ng.istft(S, 4), "Please provide the same window used by stft"),
        (lambda x, w, S: ng.stft(x, 4, window=w, return_complex=False), "is deprecated"),
        (lambda x, w, S: ng.istft(S, 4, window=w, length=30), "shorter than the length parameter"),
    ],
)
def test_what_pytorch_warns_of_warns(call: Any, words: str) -> None:
    x, w = ng.arange(10.0), ng.hann_window(4)
    S = ng.stft(x, 4, window=w, return_complex=True)
    with pytest.warns(UserWarning, match=words) as warned:
        call(x, w, S)
    assert warned[0].filename == __file__
