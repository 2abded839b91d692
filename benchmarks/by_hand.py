"""The programs of `benchmarks.loops` as Numba written by hand: values, and adjoint loops.

They are what one would write who knows the derivative of each line and has a day to spare: what the
way back needs is kept in arrays made before, small sizes are constants, no result is rounded
otherwise (``fastmath``). Each takes what its program takes, and returns its value and gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, log, sin, tanh
from typing import Any

import numpy as np
from numba import njit

__all__ = ["BY_HAND"]


# --- populations: Runge and Kutta's method ------------------------------------------------------


@njit
def _grows(r: Any, x: Any, y: Any) -> Any:
    return r[0] * x - r[1] * x * y, r[2] * x * y - r[3] * y


@njit
def _grows_back(r: Any, x: Any, y: Any, gx: Any, gy: Any, gr: Any) -> Any:
    gr[0] += gx * x
    gr[1] -= gx * x * y
    gr[2] += gy * x * y
    gr[3] -= gy * y
    return gx * (r[0] - r[1] * y) + gy * r[2] * y, gy * (r[2] * x - r[3]) - gx * r[1] * x


@njit
def populations(r: Any, start: Any, steps: int) -> Any:
    """Keep the state of each step, and compute the four rates anew on the way back."""
    h, half = 0.01, 0.005
    kept = np.empty((steps, 2))
    x, y = start[0], start[1]
    for k in range(steps):
        kept[k, 0], kept[k, 1] = x, y
        a1, b1 = _grows(r, x, y)
        a2, b2 = _grows(r, x + half * a1, y + half * b1)
        a3, b3 = _grows(r, x + half * a2, y + half * b2)
        a4, b4 = _grows(r, x + h * a3, y + h * b3)
        x += h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        y += h / 6 * (b1 + 2 * b2 + 2 * b3 + b4)
    value, gx, gy, gr = x * x + y * y, 2 * x, 2 * y, np.zeros(4)
    for k in range(steps - 1, -1, -1):
        x, y = kept[k, 0], kept[k, 1]
        a1, b1 = _grows(r, x, y)
        x2, y2 = x + half * a1, y + half * b1
        a2, b2 = _grows(r, x2, y2)
        x3, y3 = x + half * a2, y + half * b2
        a3, b3 = _grows(r, x3, y3)
        u4, v4 = _grows_back(r, x + h * a3, y + h * b3, h / 6 * gx, h / 6 * gy, gr)
        u3, v3 = _grows_back(r, x3, y3, h / 3 * gx + h * u4, h / 3 * gy + h * v4, gr)
        u2, v2 = _grows_back(r, x2, y2, h / 3 * gx + half * u3, h / 3 * gy + half * v3, gr)
        u1, v1 = _grows_back(r, x, y, h / 6 * gx + half * u2, h / 6 * gy + half * v2, gr)
        gx += u1 + u2 + u3 + u4
        gy += v1 + v2 + v3 + v4
    return value, gr


# --- a Kalman filter of four states -------------------------------------------------------------


@njit
def kalman_filter(transition: Any, noise: Any, series: Any) -> Any:
    """Keep means and covariances before each observation; the first state is what is observed."""
    n, steps, t = 4, series.size, transition
    means, covariances = np.zeros((steps + 1, 4)), np.zeros((steps + 1, 4, 4))
    predicted, halfway = np.empty((steps, 4, 4)), np.empty((steps, 4, 4))
    surprises = np.empty(steps)
    for i in range(n):
        covariances[0, i, i] = 1.0
    value = 0.0
    for k in range(steps):
        m, c, half, p = means[k], covariances[k], halfway[k], predicted[k]
        after, left = means[k + 1], covariances[k + 1]
        for i in range(n):
            for j in range(n):
                half[i, j] = (
                    t[i, 0] * c[0, j] + t[i, 1] * c[1, j] + t[i, 2] * c[2, j] + t[i, 3] * c[3, j]
                )
        for i in range(n):
            after[i] = t[i, 0] * m[0] + t[i, 1] * m[1] + t[i, 2] * m[2] + t[i, 3] * m[3]
            for j in range(n):
                p[i, j] = (
                    half[i, 0] * t[j, 0]
                    + half[i, 1] * t[j, 1]
                    + half[i, 2] * t[j, 2]
                    + half[i, 3] * t[j, 3]
                )
            p[i, i] += noise[i] * noise[i]
        variance = p[0, 0] + noise[4] * noise[4]
        surprise = series[k] - after[0]
        surprises[k] = surprise
        value += surprise * surprise / variance + log(variance)
        for i in range(n):
            gain = p[i, 0] / variance
            after[i] += gain * surprise
            for j in range(n):
                left[i, j] = p[i, j] - gain * p[j, 0]
    gt, gnoise = np.zeros((4, 4)), np.zeros(5)
    gm, gc, gp, ga = np.zeros(4), np.zeros((4, 4)), np.empty((4, 4)), np.empty((4, 4))
    ggain, gmean = np.empty(4), np.empty(4)
    for k in range(steps - 1, -1, -1):
        m, c, half, p, surprise = means[k], covariances[k], halfway[k], predicted[k], surprises[k]
        variance = p[0, 0] + noise[4] * noise[4]
        gsurprise, gvariance = (
            -surprise / variance,
            0.5 * (surprise / variance) ** 2 - 0.5 / variance,
        )
        for i in range(n):
            gsurprise += gm[i] * p[i, 0] / variance
            gp[i, 0] = 0.0
            ggain[i] = gm[i] * surprise
            for j in range(n):
                ggain[i] -= gc[i, j] * p[j, 0]
            gvariance -= ggain[i] * p[i, 0] / variance / variance
        for i in range(n):
            toward = ggain[i] / variance
            for j in range(n):
                toward -= gc[j, i] * p[j, 0] / variance
                gp[i, j] = gc[i, j]
            gp[i, 0] += toward
            gmean[i] = gm[i]
        gmean[0] -= gsurprise
        gp[0, 0] += gvariance
        gnoise[4] += 2 * noise[4] * gvariance
        for i in range(n):
            gnoise[i] += 2 * noise[i] * gp[i, i]
            for j in range(n):
                ga[i, j] = (
                    gp[i, 0] * t[0, j]
                    + gp[i, 1] * t[1, j]
                    + gp[i, 2] * t[2, j]
                    + gp[i, 3] * t[3, j]
                )
        for i in range(n):
            gm[i] = (
                t[0, i] * gmean[0] + t[1, i] * gmean[1] + t[2, i] * gmean[2] + t[3, i] * gmean[3]
            )
            for j in range(n):
                gt[i, j] += gmean[i] * m[j]
                for q in range(n):
                    gt[i, j] += gp[q, i] * half[q, j] + ga[i, q] * c[j, q]
                gc[i, j] = (
                    t[0, i] * ga[0, j]
                    + t[1, i] * ga[1, j]
                    + t[2, i] * ga[2, j]
                    + t[3, i] * ga[3, j]
                )
    return -0.5 * value, gt, gnoise


# --- a rod whose ends are kept cold -------------------------------------------------------------


@njit
def heat(conductivity: Any, start: Any, steps: int) -> Any:
    """Keep the temperatures of all steps."""
    cells = start.size
    kept, flow = np.empty((steps + 1, cells)), np.empty(cells - 1)
    kept[0] = start
    for k in range(steps):
        u, after = kept[k], kept[k + 1]
        for i in range(cells - 1):
            flow[i] = conductivity[i] * (u[i + 1] - u[i])
        after[0], after[-1] = u[0], u[-1]
        for i in range(1, cells - 1):
            after[i] = u[i] + flow[i] - flow[i - 1]
    value, gradient, g = 0.0, np.zeros(cells - 1), np.empty(cells)
    for i in range(cells):
        value += kept[steps, i] ** 2
        g[i] = 2 * kept[steps, i]
    for k in range(steps - 1, -1, -1):
        u = kept[k]
        first, last = g[0], g[-1]  # what comes to the ends stays there, and moves nothing
        g[0] = g[-1] = 0.0
        for i in range(cells - 1):
            toward = g[i] - g[i + 1]
            gradient[i] += toward * (u[i + 1] - u[i])
            flow[i] = conductivity[i] * toward
        g[0], g[-1] = first - flow[0], last + flow[-1]
        for i in range(1, cells - 1):
            g[i] += flow[i - 1] - flow[i]
    return value, gradient


# --- a Hamiltonian sampler ----------------------------------------------------------------------


@njit
def _force(b: Any, x: Any, y: Any) -> Any:
    r = y - x * x
    return x - 4 * b * r * x, 2 * b * r


@njit
def hamiltonian(b: Any, randomness: Any, leaps: int) -> Any:
    """Keep where each leap of each draw led, and whether the draw was taken."""
    draws = randomness.shape[0]
    kept, taken = np.empty((draws, leaps + 1, 2)), np.zeros(draws, np.bool_)
    x = y = total = 0.0
    for k in range(draws):
        p, q, path = randomness[k, 0], randomness[k, 1], kept[k]
        u, v = x, y
        before = 0.5 * u * u + b * (v - u * u) ** 2 + 0.5 * (p * p + q * q)
        f, g = _force(b, u, v)
        path[0, 0], path[0, 1] = u, v
        for n in range(leaps):
            p -= 0.005 * f
            q -= 0.005 * g
            u += 0.01 * p
            v += 0.01 * q
            f, g = _force(b, u, v)
            p -= 0.005 * f
            q -= 0.005 * g
            path[n + 1, 0], path[n + 1, 1] = u, v
        after = 0.5 * u * u + b * (v - u * u) ** 2 + 0.5 * (p * p + q * q)
        if log(randomness[k, 2]) < before - after:
            x, y, taken[k] = u, v, True
        total += x + y
    gb = gx = gy = 0.0
    each = 0.5 / draws
    for k in range(draws - 1, -1, -1):
        gx += each
        gy += each
        if not taken[k]:
            continue
        path, gp, gq = kept[k], 0.0, 0.0
        for n in range(leaps, -1, -1):
            # The forces of a place push twice: at the end of one leap, at the start of the next.
            halves = 0.005 if n in (0, leaps) else 0.01
            if n < leaps:
                gp += 0.01 * gx
                gq += 0.01 * gy
            u, v, gf, gg = path[n, 0], path[n, 1], -halves * gp, -halves * gq
            r = v - u * u
            gb += gg * 2 * r - gf * 4 * r * u
            gx += gf * (1 - 4 * b * r + 8 * b * u * u) - gg * 4 * b * u
            gy += gg * 2 * b - gf * 4 * b * u
    return each * total, gb


# --- Newton's method for Kepler's equation ------------------------------------------------------


@njit
def kepler(eccentricity: Any, anomaly: Any) -> Any:
    """Keep all guesses."""
    kept, count, e = np.empty(100), 0, anomaly + eccentricity
    miss = e - eccentricity * sin(e) - anomaly
    while abs(miss) > 1e-12:
        kept[count] = e
        count += 1
        e -= miss / (1 - eccentricity * cos(e))
        miss = e - eccentricity * sin(e) - anomaly
    g, gradient = 1.0, 0.0
    for k in range(count - 1, -1, -1):
        s, c = sin(kept[k]), cos(kept[k])
        miss, slope = kept[k] - eccentricity * s - anomaly, 1 - eccentricity * c
        gradient += g * (s / slope - miss * c / slope**2)
        g *= miss * eccentricity * s / slope**2
    return e, gradient + g


@njit
def kepler_implicitly(eccentricity: Any, anomaly: Any) -> Any:
    """Keep nothing: the equation holds for every eccentricity, which gives the derivative."""
    e = anomaly + eccentricity
    miss = e - eccentricity * sin(e) - anomaly
    while abs(miss) > 1e-12:
        e -= miss / (1 - eccentricity * cos(e))
        miss = e - eccentricity * sin(e) - anomaly
    slope = 1 - eccentricity * cos(e)
    return e - miss / slope, sin(e) / slope


# --- two layers of gated recurrent units --------------------------------------------------------


@njit
def _product(transposed: Any, x: Any, out: Any) -> None:
    """Add a product with a matrix to `out`, column by column: vectorised without fastmath."""
    for j in range(x.size):
        for i in range(out.size):
            out[i] += transposed[j, i] * x[j]


@njit
def _product_back(matrix: Any, x: Any, g: Any, gmatrix: Any, gx: Any) -> None:
    for i in range(g.size):
        for j in range(x.size):
            gmatrix[i, j] += g[i] * x[j]
            gx[j] += matrix[i, j] * g[i]


@njit
def _unit(w: Any, u: Any, bias: Any, x: Any, h: Any, gates: Any, after: Any, room: Any) -> None:
    """Do what a unit does: `gates` keeps reset, update, new, and a third of what is fed back."""
    n, both, back = 16, room[0], room[1]
    both[:] = bias
    back[:] = 0.0
    _product(w, x, both)
    _product(u, h, back)
    for i in range(n):
        gates[0, i] = 1 / (1 + exp(-both[i] - back[i]))
        gates[1, i] = 1 / (1 + exp(-both[n + i] - back[n + i]))
        gates[2, i] = tanh(both[2 * n + i] + gates[0, i] * back[2 * n + i])
        gates[3, i] = back[2 * n + i]
        after[i] = gates[1, i] * h[i] + (1 - gates[1, i]) * gates[2, i]


@njit
def _unit_back(
    w: Any,
    u: Any,
    x: Any,
    h: Any,
    gates: Any,
    g: Any,
    gw: Any,
    gu: Any,
    gb: Any,
    gx: Any,
    room: Any,
) -> None:
    """Turn the gradient `g` of a state into that of the state before; add up the others."""
    n, gboth, gback = 16, room[0], room[1]
    for i in range(n):
        reset, update, new, fed = gates[0, i], gates[1, i], gates[2, i], gates[3, i]
        inner = g[i] * (1 - update) * (1 - new * new)
        gboth[i] = inner * fed * reset * (1 - reset)
        gboth[n + i] = g[i] * (h[i] - new) * update * (1 - update)
        gboth[2 * n + i] = inner
        gback[i], gback[n + i], gback[2 * n + i] = gboth[i], gboth[n + i], inner * reset
        g[i] *= update
    for i in range(3 * n):
        gb[i] += gboth[i]
    _product_back(w, x, gboth, gw, gx)
    _product_back(u, h, gback, gu, g)


@njit
def recurrent_net(w1: Any, u1: Any, b1: Any, w2: Any, u2: Any, b2: Any, rows: Any) -> Any:
    """Keep states and gates of all steps."""
    steps = rows.shape[0]
    states, gates = np.zeros((2, steps + 1, 16)), np.empty((2, steps, 4, 16))
    room, errors, value = np.empty((2, 48)), np.empty(steps), 0.0
    tw1, tu1, tw2, tu2 = w1.T.copy(), u1.T.copy(), w2.T.copy(), u2.T.copy()
    for k in range(steps):
        first, second = states[0, k + 1], states[1, k + 1]
        _unit(tw1, tu1, b1, rows[k, :4], states[0, k], gates[0, k], first, room)
        _unit(tw2, tu2, b2, first, states[1, k], gates[1, k], second, room)
        errors[k] = second.sum() - rows[k, 4]
        value += errors[k] ** 2
    gw1, gu1, gb1 = np.zeros((48, 4)), np.zeros((48, 16)), np.zeros(48)
    gw2, gu2, gb2 = np.zeros((48, 16)), np.zeros((48, 16)), np.zeros(48)
    g1, g2, unread = np.zeros(16), np.zeros(16), np.zeros(4)
    for k in range(steps - 1, -1, -1):
        for i in range(16):
            g2[i] += 2 * errors[k] / steps
        first = states[0, k + 1]
        _unit_back(w2, u2, first, states[1, k], gates[1, k], g2, gw2, gu2, gb2, g1, room)
        _unit_back(w1, u1, rows[k, :4], states[0, k], gates[0, k], g1, gw1, gu1, gb1, unread, room)
    return value / steps, (gw1, gu1, gb1), (gw2, gu2, gb2)


# --- an equation whose rate is a net ------------------------------------------------------------


@njit
def _net(w: Any, bias: Any, out: Any, state: Any, hidden: Any, rate: Any) -> None:
    for i in range(32):
        sum_ = bias[i]
        for j in range(4):
            sum_ += w[i, j] * state[j]
        hidden[i] = tanh(sum_)
    rate[:] = 0.0
    for i in range(32):
        for j in range(4):
            rate[j] += out[i, j] * hidden[i]


@njit
def _net_back(
    w: Any, out: Any, state: Any, hidden: Any, g: Any, gw: Any, gb: Any, gout: Any, gstate: Any
) -> None:
    """Set the gradient of the state, and add up the others; `out` is transposed."""
    gstate[:] = 0.0
    for i in range(32):
        inner = 0.0
        for j in range(4):
            gout[i, j] += g[j] * hidden[i]
            inner += out[i, j] * g[j]
        inner *= 1 - hidden[i] * hidden[i]
        gb[i] += inner
        for j in range(4):
            gw[i, j] += inner * state[j]
            gstate[j] += w[i, j] * inner


@njit
def neural_equation(w: Any, bias: Any, out: Any, start: Any, steps: int) -> Any:
    """Keep the states that the net is asked for, and what is hidden in it: four of each step."""
    h, out = 0.05, out.T.copy()
    asked, hidden, rates = np.empty((steps, 4, 4)), np.empty((steps, 4, 32)), np.empty((4, 4))
    ahead, weight = (0.5 * h, 0.5 * h, h), (h / 6, h / 3, h / 3, h / 6)
    state = start.copy()
    for k in range(steps):
        asked[k, 0] = state
        for n in range(4):
            _net(w, bias, out, asked[k, n], hidden[k, n], rates[n])
            for j in range(4):
                if n < 3:
                    asked[k, n + 1, j] = state[j] + ahead[n] * rates[n, j]
        for j in range(4):
            slopes = rates[0, j] + 2 * rates[1, j] + 2 * rates[2, j] + rates[3, j]
            state[j] += h / 6 * slopes
    gw, gb, gout = np.zeros((32, 4)), np.zeros(32), np.zeros((32, 4))
    g, grate, gasked = 2 * state, np.empty(4), np.zeros(4)
    total = np.empty(4)
    for k in range(steps - 1, -1, -1):
        total[:] = g
        for n in range(3, -1, -1):
            for j in range(4):
                grate[j] = weight[n] * g[j] + (ahead[n] * gasked[j] if n < 3 else 0.0)
            _net_back(w, out, asked[k, n], hidden[k, n], grate, gw, gb, gout, gasked)
            for j in range(4):
                total[j] += gasked[j]
        g[:] = total
    return (state * state).sum(), gw, gb, gout.T.copy()


BY_HAND: dict[str, Callable[..., Any]] = {
    function.py_func.__name__: function
    for function in (
        populations,
        kalman_filter,
        heat,
        hamiltonian,
        kepler,
        kepler_implicitly,
        recurrent_net,
        neural_equation,
    )
}
