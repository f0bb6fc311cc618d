"""Run a program under ``tui-probe run`` from another front end, and find its trace."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import TraceError
from tui_probe.own_python import OWN_COMMAND
from tui_probe.trace.locate import is_trace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO


@dataclass(frozen=True)
class ProfiledRun:
    """A run that has ended: its trace, the program's exit status, and what it wrote to stderr."""

    trace: Path
    status: int
    messages: str


def profiled_run(options: Sequence[str], command: Sequence[str], output: TextIO) -> ProfiledRun:
    """Run a command with options of ``tui-probe run``; what it prints is written to ``output`` as it comes.

    Raises TraceError, with the messages of the run, if there is no trace.
    """
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
        messages = messages_file.read()
    trace = Path(messages.partition("\n")[0].rpartition(" ")[2])
    if not is_trace(trace):
        raise TraceError(messages.strip() or f"tui-probe run ended with status {process.returncode}, without a trace")
    return ProfiledRun(trace, process.returncode, messages)
