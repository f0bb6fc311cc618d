"""Runs the screen on a terminal, with a real process as the target: ``python -m tests.ui.screen ROOT [OPTION…]``.

The target is the Python program ``ROOT/target.py``, if there is one; otherwise the trace in ROOT/trace is explored.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tui_probe import ui
from tui_probe.ui.session import Session


class ProcessTarget:
    """A target that is a process in a group of its own."""

    simulated = False

    def __init__(self, root: Path) -> None:
        self.root = root
        self.command = ["target.py"]
        self.started = time.time() - 20  # two digits while a test lasts
        self.stdout_path, self.stderr_path = root / "stdout.log", root / "stderr.log"
        with self.stdout_path.open("wb") as out, self.stderr_path.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, root / "target.py"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        return self.process.poll()

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def terminate(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)

    def leave(self) -> None:
        (self.root / "was_left").touch()

    def trace_directories(self) -> list[Path]:
        trace = self.root / "trace"
        return [trace] if trace.exists() else []


def main() -> int:
    root = Path(sys.argv[1])
    options = set(sys.argv[2:])
    appearance = ui.Appearance.from_environment(
        ascii_only="ascii" in options or None,
        low_bandwidth="low" in options or None,
        palette=next((name for name in ("light", "ansi", "plain") if name in options), None),
    )
    if "crash" in options:
        _crash_soon()
    if not (root / "target.py").exists():
        return ui.run(Session(traces=(root / "trace",)), appearance)
    target = ProcessTarget(root)
    try:
        return ui.run(Session(target=target), appearance, alternative="tui-probe run --no-ui")
    finally:
        (root / "left").write_text(f"{target.poll()}")
        if target.poll() is None:
            target.kill()
        target.process.wait()


def _crash_soon() -> None:
    from tui_probe.ui.live.feed import Feed

    def fail(_: Feed) -> None:
        raise RuntimeError("a planted failure")

    Feed.poll = fail  # type: ignore[assignment,method-assign]


if __name__ == "__main__":
    sys.exit(main())
