"""Analyses of the user's own: a Python file that is run on each result that a run saved.

It is called as ``python FILE.py TRACE/result/0.486795.bin``, in a process of its own, after the program's end; what it
prints is printed. It runs only if the command line has ``--callback``: with a file, or without one for the callback of
a probe file whose path is given to ``-p``. Probe files are shared, so their callback must be in their directory.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.input_limits import PROBE_FILE, parse_toml
from tui_probe.probe_files.catalogue import find_set
from tui_probe.probe_files.choices import split_choice
from tui_probe.probe_files.loading import built_in_files, installed_files, probe_files_in
from tui_probe.trace.locate import is_trace
from tui_probe.trace.plain_file import read_within

from .text_report import report_message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CALLBACK_SECONDS: Final = 600.0
"""Seconds that one result may take."""
_CALLBACK_KEYS: Final = ("callback", "CALLBACK", "analyze_hook")


class NamedCallback(NamedTuple):
    """A Python file that a probe file names, relative to its directory."""

    probe: Path
    file: str

    @property
    def refusal(self) -> str:
        """Reason why ``--callback`` without a file does not run it; "" if it does."""
        folder = self.probe.parent.resolve()
        if is_trace(folder) or is_trace(folder.parent):
            return "the probe file is in a trace"
        if Path(self.file).is_absolute() or not self.path.resolve().is_relative_to(folder):
            return "the callback is not in the directory of the probe file"
        return ""

    @property
    def path(self) -> Path:
        return self.probe.parent / self.file

    @property
    def not_run_message(self) -> str:
        """Return the report's note on a callback that did not run without ``--callback``."""
        reason = f" ({self.refusal})" if self.refusal else ""
        option = f"--callback {self.file}" if reason else "--callback"
        return f"{self.probe}: callback {self.file} was not run{reason}; to run it, pass {option}"


def callback_of(option: Path | bool | None, probes: Sequence[str]) -> Path | None:
    """Return the file to run: the one given, or if ``option`` is True the one that a probe file names; else None.

    Raises UsageError where there is no such file, or it may not be run.
    """
    if isinstance(option, Path):
        if not option.is_file():
            raise UsageError(f"--callback {option}: no such file")
        return option.absolute()
    if not option:
        return None
    callback = named_callback(probes)
    if callback is None:
        raise UsageError("--callback: no probe file of -p has a Python callback; pass --callback FILE.py")
    if callback.refusal:
        raise UsageError(
            f"{callback.probe}: callback {callback.file} was not run ({callback.refusal});"
            " to run a file that you trust, pass --callback FILE.py"
        )
    return callback.path.resolve()


def named_callback(probes: Sequence[str]) -> NamedCallback | None:
    """Return the first callback of these probes that is a Python file, if one is."""
    return next((callback for word in probes if (callback := _callback_of(word)) is not None), None)


def _callback_of(word: str) -> NamedCallback | None:
    """Return the callback of a probe file; None for built-in and installed probes, sets, and names of analyses."""
    try:
        name, _ = split_choice(word)
        probe = next(iter(probe_files_in(Path(name)).values()), Path(name))
        if find_set(name):
            return None
        if any(name in files() or probe.resolve() in files().values() for files in (built_in_files, installed_files)):
            return None
        values = parse_toml(read_within(probe, PROBE_FILE).decode("utf-8", "replace"))
    except (OSError, ValueError, ProbeFileError):
        return None
    files = [file for key in _CALLBACK_KEYS if isinstance(file := values.get(key), str) and file.endswith(".py")]
    callbacks = [NamedCallback(probe, file) for file in files]
    return next((callback for callback in callbacks if callback.path.is_file()), None)


def run_callback(callback: Path, traces: Sequence[Path]) -> None:
    """Run the callback on every result of the traces, the oldest first. Failures are reported once per trace."""
    for trace in traces:
        failures, results = [], _results_of(trace)
        for result in results:
            failure = _run_file(callback, result)
            if failure is not None:
                failures.append(f"{result.name}: {failure}")
        if failures:
            report_message(
                trace,
                f"{callback.name} failed for {len(failures)} of {len(results)} results; first failure: {failures[0]}",
            )


def _results_of(trace: Path) -> list[Path]:
    return sorted((trace / "result").glob("*.bin"), key=lambda path: (len(path.name), path.name))


def _run_file(callback: Path, result: Path) -> str | None:
    """Run the callback on a result. Return why it failed, the last line of its stderr; None if it did not."""
    sys.stdout.flush()
    try:
        process = subprocess.run(
            [sys.executable, str(callback), str(result)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            timeout=CALLBACK_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"did not finish within {CALLBACK_SECONDS:.0f} s"
    except OSError as error:
        return error.strerror or str(error)
    if process.returncode == 0:
        return None
    return next(_last_output(process.stderr), f"exit status {process.returncode}")


def _last_output(text: bytes) -> Iterator[str]:
    lines = text.decode("utf-8", "backslashreplace").splitlines()
    return (line.strip() for line in reversed(lines) if line.strip())
