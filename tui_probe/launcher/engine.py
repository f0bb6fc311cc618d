"""The run's probe engine: one process that lives as long as the launcher, and is started again where it ends early."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.engine.reception import AHEAD_SUFFIX, Reception, listen_at, read_kernel_notes, receive_at
from tui_probe.engine.workers import SharedCounts, usual_ahead_workers, usual_workers
from tui_probe.own_python import own_environment

from .helper_process import ForkedProcess
from .spool import PREFIX, mark_owner, remove_abandoned, short_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.engine.reception import KernelNote
    from tui_probe.probe_files.choices import ChosenProbe

    from .options import RunOptions

STOP_LIMIT = 2.0
"""Seconds for kernels under way to be finished, on the simulated GPU."""
HURRIED = 0.2
"""Seconds instead of ``STOP_LIMIT`` in a run that was asked to end."""
SHORT_STOP_LIMIT = 0.1
"""Seconds on a GPU: another process finishes kernels that need longer."""
MAX_STARTS = 8
"""A kernel that kills every engine must not start one per launch for ever."""
NAME = b"tui-probe engine"
"""Command line of the process in tools such as ps."""


class Engine:
    """The engine's process and its socket, in a private directory with a short path."""

    def __init__(self, probes: Sequence[ChosenProbe], options: RunOptions, load_ptx: bool, log: Path) -> None:
        remove_abandoned(Path(short_folder()), PREFIX)
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=short_folder()))
        mark_owner(self._folder)
        self.socket = self._folder / "engine"
        self._log = log
        self._probes, self._options, self._load_ptx = probes, options, load_ptx
        self._start_count = 0
        self._thread = threading.get_ident()
        with ExitStack() as undo:
            undo.callback(shutil.rmtree, self._folder, ignore_errors=True)
            # The target need not wait for the engine: its first question does.
            self._listener = undo.enter_context(listen_at(self.socket))
            prepares_ahead = options.cache and usual_ahead_workers() > 0
            self._images = undo.enter_context(receive_at(self.socket)) if prepares_ahead else None
            self._process = self._start()
            undo.pop_all()

    def _start(self) -> ForkedProcess:
        """Start it. The listener stays with the launcher: what hooks ask between two engines waits for the second."""

        def work() -> int:
            reception = Reception(self._listener)
            reception.start()
            from .engine_process import serve  # read next to the program's start, not before it

            sockets = self.socket, reception, self._images
            return serve(*sockets, self._probes, self._options, self._counts, load_ptx=self._load_ptx)

        self._start_count += 1
        self._counts = SharedCounts(usual_workers())
        with self._log.open("ab") as output:
            sockets = {listener.fileno() for listener in (self._listener, self._images) if listener is not None}
            return ForkedProcess(work, NAME, output.fileno(), sockets)

    def revive(self) -> str | None:
        """Start it again if it has ended, and return what to report about it; None if it runs, or has ended too often.

        Only the thread that made it does: the process is asked to end when that thread does.
        """
        end_text = self._end_text() if threading.get_ident() == self._thread else None
        if end_text is None:
            return None
        if self._start_count >= MAX_STARTS:
            self._close_socket()
            return None
        self._process.close()
        self._process = self._start()
        return f"{end_text} and was restarted; kernels in preparation ran unprobed"

    @property
    def pid(self) -> int:
        return self._process.pid

    def messages(self) -> str:
        """Return the engine's output on its standard streams."""
        return self._log.read_text(errors="replace").strip()

    def failure(self) -> str | None:
        """Return why the engine ended, None while it runs."""
        end_text = self._end_text()
        return end_text and f"{end_text}; later kernels ran unprobed"

    def _end_text(self) -> str | None:
        """Return the end of the engine as text; None while it runs."""
        status = self._process.poll()
        if status is None:
            return None
        cause = f"signal {-status}" if status < 0 else f"status {status}"
        last_lines = self.messages().splitlines()[-1:] or ["no message"]
        return f"the probe engine ended with {cause} ({last_lines[0]})"

    def cache_counts(self) -> dict[str, int] | None:
        """Kernels that were ready in the cache (``hits``) and others (``misses``); None if the engine is gone."""
        if self._process.poll() is not None:
            return None
        hits, misses = self._counts.total()
        return {"hits": hits, "misses": misses}

    def stop(self, seconds: float = STOP_LIMIT) -> None:
        """End the engine when it has finished the kernels under way, at most after so long, and remove its socket.

        With ``STOP_LIMIT`` kernels are finished for the next run: on a GPU, in a process that outlives this one.
        """
        leaves_kernels = seconds == STOP_LIMIT and self._options.cache and not self._load_ptx
        self._process.send(signal.SIGTERM)
        if self._process.wait(SHORT_STOP_LIMIT if leaves_kernels else seconds) is None:
            self._process.kill()  # with the assemblers that it has started
            if leaves_kernels and (kernels := read_kernel_notes(self._folder)):
                finish_later(self._options, self._probes, kernels)
        self._process.close()
        self._close_socket()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _close_socket(self) -> None:
        """Remove and close the socket, so that hooks fail immediately instead of waiting for an answer."""
        self.socket.unlink(missing_ok=True)
        self._listener.close()
        if self._images is not None:
            Path(f"{self.socket}{AHEAD_SUFFIX}").unlink(missing_ok=True)
            self._images.close()


def finish_later(options: RunOptions, probes: Sequence[ChosenProbe], kernels: Sequence[KernelNote]) -> None:
    """Put kernels into the cache, for the next run, in a process that outlives this one."""
    import pickle  # most runs leave no kernels

    with contextlib.suppress(OSError):  # then the next run prepares them
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tui_probe.launcher.engine_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=own_environment(),
            start_new_session=True,
        )
        assert process.stdin is not None
        with process.stdin:
            pickle.dump((options, probes, kernels), process.stdin)
        process.returncode = 0  # no one waits for it
