"""With a umask that takes all rights from the owner, traces can be read, and the program has that umask."""

from __future__ import annotations

import json
import shlex
import sys

from .conftest import EXAMPLE, Tool


def test_run_with_strict_umask_leaves_usable_trace(tool: Tool) -> None:
    program = f"umask; exec {shlex.join(EXAMPLE)} --kernel saxpy"
    script = f'umask 0777; exec {sys.executable} -m tui_probe run --sim --no-report --tracedir trace -- sh -c "$1"'
    done = tool._run(["sh", "-c", script, "sh", program], tool.environment)
    assert done.stdout.splitlines()[0] == "0777"
    (trace,) = (tool.folder / "trace").iterdir()
    assert trace.stat().st_mode & 0o777 == 0o700
    assert (trace / "run.json").stat().st_mode & 0o777 == 0o600
    assert json.loads((trace / "run.json").read_text())["exit_status"] == 0
