"""Programs in processes of their own, which have imported numgrad and done nothing else.

Python, Numba and numgrad take a second to start. So one process imports them, and each program runs
in a fork of that. What is about starting itself, or about what the environment says then, starts a
Python of its own: `fresh=True`, as all do where there is no fork.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

__all__ = ["ended_well", "run"]

ROOT = Path(__file__).parents[1]
# Deprecated is to fork where threads run, which some programs do on purpose.
_PYTHON = [sys.executable, "-W", "ignore::DeprecationWarning"]
_SERVER = """
import gc, json, os, signal, sys
import numgrad

gc.freeze()
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    for place, name in enumerate((os.devnull, job["output"], job["errors"])):
        os.dup2(os.open(name, os.O_RDWR), place)
    # A shell that runs something in the background may have it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    sys.argv = job["arguments"]
    if job["file"]:
        __file__ = job["file"]
    exec(compile(job["script"], job["file"] or "<string>", "exec"))
    sys.exit()
"""


@functools.cache
def _server() -> subprocess.Popen[str]:
    """Start the process that has imported numgrad; it ends with this one."""
    pipe = subprocess.PIPE
    server = subprocess.Popen(
        [*_PYTHON, "-c", _SERVER],
        stdin=pipe,
        stdout=pipe,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )

    def end() -> None:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.close()
        server.wait(60)
        server.stdout.close()

    atexit.register(end)
    return server


def run(
    script: str,
    *arguments: str,
    file: Path | None = None,
    fresh: bool = False,
    timeout: float = 120,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run a script and return what it wrote and how it ended; one that hangs fails the test.

    Parameters
    ----------
    script : str
    *arguments : str
        What it finds in ``sys.argv``, behind its name.
    file : Path, optional
        Where to write it: other processes import it from there, as those of a pool do.
    fresh : bool
        Whether it is to import numgrad itself.
    timeout : float
        In seconds.
    **environment : str
        Variables beside those of this process.
    """
    script = textwrap.dedent(script)
    variables = os.environ | environment
    if file is not None:
        file.write_text(script)
    if fresh or not hasattr(os, "fork"):
        command = [*_PYTHON, *(["-c", script] if file is None else [str(file)]), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env=variables, check=False
        )
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        output.touch()
        errors.touch()
        job = {
            "script": script,
            "file": str(file or ""),
            "arguments": [str(file or "-c"), *arguments],
            "environment": dict(variables),
            "folder": os.getcwd(),
            "output": str(output),
            "errors": str(errors),
        }
        server = _server()
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(job) + "\n")
        server.stdin.flush()
        ready, _, _ = select.select([server.stdout], [], [], timeout)
        if not ready:
            os.killpg(server.pid, signal.SIGKILL)
            _server.cache_clear()
            raise TimeoutError(f"{script}\n{output.read_text()}\n{errors.read_text()}")
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(
            job["arguments"], code, output.read_text(), errors.read_text()
        )


def ended_well(
    script: str, *arguments: str, file: Path | None = None, fresh: bool = False, **environment: str
) -> str:
    """Run a script, which must write no errors, and return what it wrote."""
    ended = run(script, *arguments, file=file, fresh=fresh, **environment)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout
