"""A terminal that is lost: what was started under the screen continues, and its trace is completed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .terminal import terminal
from .test_traces import record_of

if TYPE_CHECKING:
    from .conftest import Runner

Script = Callable[[str], list[str]]

# Runs until the file ``go`` exists.
WAITING = """
import os, pathlib, time
print('ready', flush=True)
while not pathlib.Path('go').exists():
    time.sleep(0.01)
print('done', flush=True)
os._exit(3)
"""


def test_the_target_goes_on_and_its_trace_is_completed(tool: Runner, script: Script) -> None:
    tool.environment["FAKE_LAUNCHES"] = "python"
    argv = tool.command("run", "-p", "block_sched", "--sim", "--", *script(WAITING))
    with terminal(argv, tool.folder, tool.environment | {"TERM": "xterm-256color"}) as screen:
        screen.read_until(b"running")
        os.close(screen.descriptor)
        screen.descriptor = os.open(os.devnull, os.O_RDONLY)
        while Path(f"/proc/{screen.pid}/fd/2").readlink() != Path(os.devnull):
            time.sleep(0.01)
        os.kill(screen.pid, signal.SIGHUP)  # a shell passes it on to its jobs
        (trace,) = (tool.folder / "trace").glob("*_*_*")
        assert record_of(trace)["ended"] is None
        (tool.folder / "go").touch()
        assert os.waitstatus_to_exitcode(screen.wait()) == 3
    assert record_of(trace)["exit_status"] == 3
    assert (trace / "stdout.log").read_text() == "ready\ndone\n"
    assert list((tool.folder / "trace").iterdir()) == [trace]
