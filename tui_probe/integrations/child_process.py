"""Run ``tui-probe`` commands for a server, a notebook or a gate, and find their traces.

Each command is a process of its own: a result file that takes all memory, or a program that never ends, does not end
the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.draw.printable import printable
from tui_probe.errors import TraceError
from tui_probe.own_python import OWN_COMMAND
from tui_probe.trace.locate import is_trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import TextIO

MAX_OUTPUT: Final = 4 << 20
"""Bytes of a command's output that are read; the rest is dropped."""
GRACE_SECONDS: Final = 5.0
"""Seconds between SIGTERM and SIGKILL to a process group."""
TICK_SECONDS: Final = 2.0
"""Seconds between two calls of ``on_tick``."""
_TRACE_PREFIX: Final = "[info] trace in "


@dataclass(frozen=True)
class CommandResult:
    """A command that has ended: its exit status (negative: the signal that ended it), output, and messages."""

    status: int
    output: str
    messages: str
    timed_out: bool = False


async def run_tui_probe(
    arguments: Sequence[str],
    directory: Path,
    *,
    limit: float,
    keeps_output: bool = True,
    traces: Path | None = None,
    on_tick: Callable[[float], Awaitable[None]] | None = None,
) -> CommandResult:
    """Run a command in ``directory`` for at most ``limit`` seconds.

    Its process group gets SIGTERM after that time, or when the calling task is cancelled, and SIGKILL after ``GRACE``
    seconds more. ``keeps_output=False`` drops stdout, which for ``run`` is the program's. ``traces`` is where
    commands look for names of runs and for the newest trace.
    """
    environment = os.environ | ({"NEUTRINO_TRACEDIR": str(traces)} if traces else {})
    process = await asyncio.create_subprocess_exec(
        *OWN_COMMAND, *arguments, cwd=directory, env=environment, stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        stdout=asyncio.subprocess.PIPE if keeps_output else asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    readers = [asyncio.ensure_future(_read_text(stream)) for stream in (process.stdout, process.stderr)]
    timed_out = False
    try:
        timed_out = not await _wait_for_end(process, limit, on_tick)
    finally:
        if process.returncode is None:
            await asyncio.shield(_end_group(process))
    output, messages = [await reader for reader in readers]
    return CommandResult(process.returncode or 0, output, messages, timed_out)


async def _wait_for_end(
    process: asyncio.subprocess.Process, limit: float, on_tick: Callable[[float], Awaitable[None]] | None
) -> bool:
    """Return whether the process ended within ``limit`` seconds."""
    elapsed = 0.0
    while elapsed < limit:
        step = min(TICK_SECONDS, limit - elapsed)
        try:
            await asyncio.wait_for(process.wait(), step)
        except TimeoutError:
            elapsed += step
            if on_tick is not None:
                await on_tick(elapsed)
        else:
            return True
    return process.returncode is not None


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """End all processes of the command: first with SIGTERM, so that the trace is completed."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal_number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what outlived the command


async def _read_text(stream: asyncio.StreamReader | None) -> str:
    """Return the text of a stream as printable lines, up to ``MAX_OUTPUT`` bytes."""
    if stream is None:
        return ""
    output = bytearray()
    while block := await stream.read(1 << 16):
        output += block[: MAX_OUTPUT - len(output)]
    return "\n".join(printable(line) for line in output.decode("utf-8", "replace").split("\n"))


@dataclass(frozen=True)
class ProfiledRun:
    """A run that has ended: the program's exit status, its stderr, and traces of processes with kernels."""

    status: int
    messages: str
    traces: tuple[Path, ...]

    def trace(self, command: Sequence[str]) -> Path:
        """Return the trace of the only process that launched kernels. Raises TraceError if there is no such process."""
        if len(self.traces) == 1:
            return self.traces[0]
        if self.traces:
            processes = f"{len(self.traces)} processes of {shlex.join(command)}"
            raise TraceError(f"{processes} launched kernels: pass the command of one process")
        raise TraceError(self.messages or f"{shlex.join(command)} launched no kernel (exit status {self.status})")


def profiled_run(options: Sequence[str], command: Sequence[str], output: TextIO) -> ProfiledRun:
    """Run a command with options of ``tui-probe run``; what it prints is written to ``output`` as it comes."""
    arguments = [*OWN_COMMAND, "run", "--no-ui", "--no-report", *options, "--", *command]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryFile("w+", errors="replace") as messages_file:
        with subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=messages_file, text=True, errors="replace", env=environment
        ) as process:
            assert process.stdout is not None
            for text in process.stdout:
                output.write(text)
        messages_file.seek(0)
        traces, messages = announced_traces(messages_file.read())
    return ProfiledRun(process.returncode, messages, traces)


def announced_traces(messages: str) -> tuple[tuple[Path, ...], str]:
    """Split messages of a run into traces of processes that launched kernels, and the other messages.

    A trace is announced before it is known whether its process will launch a kernel: a shell does not. Only the first
    line is sure to be ours, so a trace elsewhere than that is not one of this run.
    """
    lines = messages.splitlines()
    announced = [Path(line.removeprefix(_TRACE_PREFIX)) for line in lines if line.startswith(_TRACE_PREFIX)]
    other_messages = "\n".join(line for line in lines if not line.startswith(_TRACE_PREFIX))
    return tuple(
        trace for trace in dict.fromkeys(announced) if trace.parent == announced[0].parent and is_trace(trace)
    ), other_messages.strip()
