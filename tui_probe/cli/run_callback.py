"""Analyses of the user's own: a Python file that is run on each result that a run saved.

It is called as ``python FILE.py TRACE/result/0.486795.bin``, in a process of its own, after the program's end; what it
prints is printed. Which file comes from the command line: ``--callback``, or a probe file that is named by its path. A
trace never runs anything by being opened.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UsageError

from .messages import tell_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE: Final = 600.0
"""Seconds that one result may take."""
_HOOKS: Final = ("callback", "CALLBACK", "analyze_hook")


def callback_of(told: Path | None, probes: Sequence[str]) -> Path | None:
    """The file to run: the one that was told, else what the first probe file named by its path asks for; None: none.

    Raises UsageError where the file that was told is not there.
    """
    if told is not None:
        if not told.is_file():
            raise UsageError(f"--callback {told}: there is no such file")
        return told.absolute()
    return next((found for word in probes if (found := _asked_by(Path(word))) is not None), None)


def _asked_by(probe: Path) -> Path | None:
    """What a probe file's callback names beside it, if that is a file; names of analyses known here are not files."""
    if probe.suffix != ".toml" or not probe.is_file():
        return None
    try:
        values = tomllib.loads(probe.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return None
    names = [name for key in _HOOKS if isinstance(name := values.get(key), str) and name.endswith(".py")]
    paths = [(probe.parent / name).absolute() for name in names]
    return next((path for path in paths if path.is_file()), None)


def run_callback(callback: Path, traces: Sequence[Path]) -> None:
    """Run it on every result of the traces, the oldest first. What fails is told once for each trace."""
    for trace in traces:
        failures, results = [], _results_of(trace)
        for result in results:
            failed = _run(callback, result)
            if failed is not None:
                failures.append(f"{result.name}: {failed}")
        if failures:
            tell_of(trace, f"{callback.name} failed for {len(failures)} of {len(results)} results, first {failures[0]}")


def _results_of(trace: Path) -> list[Path]:
    return sorted((trace / "result").glob("*.bin"), key=lambda path: (len(path.name), path.name))


def _run(callback: Path, result: Path) -> str | None:
    """None, or why it failed: the last line that it wrote to stderr."""
    sys.stdout.flush()
    try:
        done = subprocess.run(
            [sys.executable, str(callback), str(result)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"not done after {PATIENCE:.0f} s"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0:
        return None
    return next(_last_words(done.stderr), f"exit status {done.returncode}")


def _last_words(text: bytes) -> Iterator[str]:
    lines = text.decode("utf-8", "backslashreplace").splitlines()
    return (line.strip() for line in reversed(lines) if line.strip())
