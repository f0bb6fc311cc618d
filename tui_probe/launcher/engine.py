"""The run's probe engine: one process that lives as long as the launcher."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.engine.listening import listen_at

from .natives import package_path
from .target import PR_SET_PDEATHSIG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probe_files.choices import ChosenProbe

    from .options import RunOptions

STOP_LIMIT = 10.0
ANSWER_LIMIT = 2.0
HURRIED = 0.2
"""Instead of both, where the run was asked to end."""
SOCKET_PATH_LIMIT = 107  # bytes in sockaddr_un, without the final NUL


class Engine:
    """The engine's process and its socket, in a private directory with a short path."""

    def __init__(self, probes: Sequence[ChosenProbe], options: RunOptions, load_ptx: bool, log: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tui-probe-", dir=short_folder()))
        self.socket = self._folder / "engine"
        self._log = log
        listener = listen_at(self.socket)  # the target need not wait for the engine: its first question does
        command = [sys.executable, "-P", "-m", "tui_probe.launcher.engine_process"]
        command += [
            "--socket",
            str(self.socket),
            "--listener",
            str(listener.fileno()),
            "--load",
            "ptx" if load_ptx else "bin",
        ]
        command += ["--kernels", options.kernels or "", "--filter", options.excluded or ""]
        command += [] if options.cache else ["--no-cache"]
        command += ["--sources", str(options.source_bytes()), "--machine-code", options.machine_code]
        for place, probe in enumerate(probes):
            command += ["--probe", str(probe.path), *(["--sampled", str(place)] if probe.sample else ())]
        libc = ctypes.CDLL(None, use_errno=True)
        with listener, log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env=os.environ | {"PYTHONPATH": f"{package_path()}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(listener.fileno(),),
                start_new_session=True,  # the terminal's keys are for the target
                preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0),
            )

    def messages(self) -> str:
        """What the engine wrote to its standard streams."""
        return self._log.read_text(errors="replace").strip()

    def failure(self) -> str | None:
        """Why the engine is no longer there, None while it is."""
        status = self._process.poll()
        if status is None:
            return None
        how = f"signal {-status}" if status < 0 else f"status {status}"
        last = self.messages().splitlines()[-1:] or ["no message"]
        return f"the probe engine ended with {how} ({last[0]}); kernels that came later ran unprobed"

    def cache_counts(self, seconds: float = ANSWER_LIMIT) -> dict[str, int] | None:
        """Kernels that were ready in the cache (``hits``) and that were not (``misses``); None if it cannot say."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(seconds)
                connection.connect(str(self.socket))
                connection.sendall(b"cache\t0\n")
                hits, misses = connection.recv(100).split(b"\t")[2].split()
        except (OSError, IndexError, ValueError):  # gone, stopped, or cut off
            return None
        return {"hits": int(hits), "misses": int(misses)}

    def stop(self, seconds: float = STOP_LIMIT) -> None:
        """End the engine when it has finished the kernels under way, at most after so long, and remove its socket."""
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # with the assemblers that it has started
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def short_folder() -> str:
    """Where a socket's path is short enough: the usual temporary folder, else /tmp."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) + len("/tui-probe-xxxxxxxx/engine") <= SOCKET_PATH_LIMIT else "/tmp"
