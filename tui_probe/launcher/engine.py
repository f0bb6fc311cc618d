"""The run's probe engine: one process that lives as long as the launcher."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.engine.listening import listen_at

from .forked import Forked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.probe_files.choices import ChosenProbe

    from .options import RunOptions

STOP_LIMIT = 10.0
ANSWER_LIMIT = 2.0
HURRIED = 0.2
"""Instead of both, where the run was asked to end."""
NAME = b"tui-probe engine"
SOCKET_PATH_LIMIT = 107  # bytes in sockaddr_un, without the final NUL


class Engine:
    """The engine's process and its socket, in a private directory with a short path."""

    def __init__(self, probes: Sequence[ChosenProbe], options: RunOptions, load_ptx: bool, log: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tui-probe-", dir=short_folder()))
        self.socket = self._folder / "engine"
        self._log = log
        try:
            self._process = self._start(probes, options, load_ptx)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _start(self, probes: Sequence[ChosenProbe], options: RunOptions, load_ptx: bool) -> Forked:
        def work() -> int:
            from .engine_process import serve  # read beside the program's start, not before it

            return serve(self.socket, listener, probes, options, load_ptx=load_ptx)

        listener = listen_at(self.socket)  # the target need not wait for the engine: its first question does
        with listener, self._log.open("wb") as output:
            return Forked(work, NAME, output.fileno(), {listener.fileno()})

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
        self._process.send(signal.SIGTERM)
        if self._process.wait(seconds) is None:
            self._process.kill()  # with the assemblers that it has started
        self._process.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def short_folder() -> str:
    """Where a socket's path is short enough: the usual temporary folder, else /tmp."""
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) + len("/tui-probe-xxxxxxxx/engine") <= SOCKET_PATH_LIMIT else "/tmp"
