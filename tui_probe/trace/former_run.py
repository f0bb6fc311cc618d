"""The run that made a trace, for who would start it again."""

from __future__ import annotations

from pathlib import Path

from tui_probe.errors import UsageError
from tui_probe.trace.run_info import RunInfo, read_run_info
from tui_probe.trace.secrets import MASK


def former_run(trace: Path) -> tuple[RunInfo, Path]:
    """What ran, and the folder where it ran. UsageError where the trace does not say, or the folder is gone."""
    info = read_run_info(trace / "run.json") or RunInfo()
    if not info.command:
        raise UsageError(f"{trace}: run.json does not say what ran; start it with tui-probe run -- COMMAND")
    if any(MASK in word for word in info.command):
        raise UsageError(
            f"{trace}: secrets of its command line were masked ({MASK}), so it cannot be run again: start it with"
            " tui-probe run -- COMMAND, and with --keep-secrets where traces may hold them"
        )
    folder = Path(info.cwd or ".")
    if not folder.is_dir():
        raise UsageError(f"{trace}: it ran in {folder}, no folder here; start it with tui-probe run -- COMMAND")
    return info, folder
