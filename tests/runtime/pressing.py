"""Press Ctrl-C again and again while kernels are compiled for the first time.

    python tests/runtime/pressing.py --processes 100

starts fresh processes with empty caches, each of which is interrupted some dozens of times at
random moments while it computes. In the end, each has to compute the right numbers, and so has a
process that loads what it left in its cache.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = """
import faulthandler, os, random, signal, sys, threading, time
seed, pause, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
faulthandler.dump_traceback_later(seconds + 240, exit=True)  # where it hangs, if it does
came, open_to_interrupts = 0, False

def interrupt(number, frame):  # raises where it is caught, and nowhere else
    global came, open_to_interrupts
    came += 1
    if open_to_interrupts:
        open_to_interrupts = False
        raise KeyboardInterrupt

signal.signal(signal.SIGINT, interrupt)
import numpy as np
import numgrad as ng

def work():
    x = ng.tensor([0.1, 0.2, 0.3], requires_grad=True)
    y = (x.exp() * x.sin() + x.tanh()).cumsum(0).sum()
    (gradient,) = ng.autograd.grad(y, x, create_graph=True)
    gradient.sum().backward()
    compiled = ng.jit(lambda a: (a.cos() * a).sum() + a.softmax(0)[0])
    numbers = np.array([0.1, 0.2, 0.3], np.float32)
    (direct,) = ng.jit(lambda a: (a.sqrt() * a).sum()).lower(ng.from_numpy(numbers)).dispatcher(
        numbers
    )
    return [*gradient.tolist(), *x.grad.tolist(), compiled(x.detach()).item(), float(direct)]

random = random.Random(seed)
pressing = True

def press():
    while pressing:
        time.sleep(random.random() * pause)
        if pressing:
            os.kill(os.getpid(), signal.SIGINT)

presses = threading.Thread(target=press, daemon=True)
deadline = time.monotonic() + seconds
if seconds:
    presses.start()
while time.monotonic() < deadline:
    try:
        open_to_interrupts = True
        while time.monotonic() < deadline:
            work()
        open_to_interrupts = False
    except KeyboardInterrupt:
        pass
pressing = False
if seconds:
    presses.join()
print(came, *work())
"""


def press(seed: int, pause: float, seconds: float, directory: str) -> tuple[int, list[float]]:
    """Return how many interrupts a process has survived, and what it computed then.

    Parameters
    ----------
    seed : int
    pause : float
        How many seconds at most between two interrupts.
    seconds : float
        For how long; 0 for a process that is left in peace.
    directory : str
        Its kernel cache.

    Raises
    ------
    RuntimeError
        If the process ended in another way.
    """
    environment = {**os.environ, "NUMGRAD_CACHE_DIR": directory, "PYTHONFAULTHANDLER": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(seed), str(pause), str(seconds)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=seconds + 300,
        check=False,
    )
    if ended.returncode:
        raise RuntimeError(f"seed {seed} ended with {ended.returncode}:\n{ended.stderr[-4000:]}")
    came, *numbers = ended.stdout.split()
    return int(came), [float(number) for number in numbers]


def main() -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first process")
    parser.add_argument("--pause", type=float, default=0.3, help="at most, between interrupts")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each process")
    options = parser.parse_args()
    interrupts, failures = 0, []
    with tempfile.TemporaryDirectory() as folder:
        _, expected = press(0, 1.0, 0.0, str(Path(folder, "undisturbed")))
        for seed in range(options.seed, options.seed + options.processes):
            directory = str(Path(folder, str(seed)))
            try:
                came, found = press(seed, options.pause, options.seconds, directory)
                _, loaded = press(seed, 1.0, 0.0, directory)
            except RuntimeError as error:
                failures.append(seed)
                print(error, flush=True)
                continue
            interrupts += came
            if found != expected or loaded != expected:
                failures.append(seed)
                print(f"seed {seed}: {found} and {loaded}, not {expected}", flush=True)
    print(f"{interrupts} interrupts in {options.processes} processes; failed: {failures}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
