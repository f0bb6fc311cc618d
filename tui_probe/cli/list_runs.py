"""``tui-probe list``: recent runs by command, each with what it found and what changed against the previous run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.draw.printable import dump_json
from tui_probe.errors import TraceError
from tui_probe.trace.recent import recent_traces

from .arguments import count, trace_dir, traces_of_name
from .output import (
    ExitStatus,
    Progress,
    add_max_chars_option,
    limit_lines,
    limited_json,
    max_chars,
    terminal_size,
    write_stdout,
)
from .text_report import DEFAULT_WIDTH, MIN_WIDTH

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from tui_probe.trace.recent import TraceSummary
    from tui_probe.verdicts.run_verdict import RunVerdict

DEFAULT_LIMIT = 500
"""Runs listed by default: each costs the reading of both ends of its log."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of runs and their format."""
    parser.add_argument(
        "places", nargs="*", metavar="DIRECTORY|NAME",
        help="directories of traces, or names of runs; default: trace directory and recently opened traces",
    )  # fmt: skip
    parser.add_argument(
        "-n",
        "--most",
        type=count,
        default=DEFAULT_LIMIT,
        metavar="N",
        help="list the newest N runs; default %(default)s",
    )
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default %(default)s")
    add_max_chars_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the commands, those with the newest runs first."""
    from tui_probe.pages.trace_list import RunPage

    traces = listed_traces(arguments.places, arguments.most)
    page = RunPage(traces, verdicts_of(traces))
    if arguments.format == "json":
        limited = max_chars(arguments) is not None
        write_stdout(limited_json(page.record(), arguments) if limited else dump_json(page.record(), indent=1))
    elif page.commands:
        write_stdout(limit_lines(page.lines(max(MIN_WIDTH, terminal_size((DEFAULT_WIDTH, 24)).columns)), arguments))
    else:
        write_stdout("no traces yet; start with tui-probe run -- COMMAND, or tui-probe demo for an example")
    return ExitStatus.OK


def listed_traces(places: Sequence[str], limit: int) -> list[TraceSummary]:
    """Return the traces in these directories, and those of runs with these names. Raises TraceError for others."""
    folders = [path for path in map(Path, places) if path.is_dir()]
    names = [word for word in places if Path(word) not in folders]
    unknown = next((word for word in names if not traces_of_name(word)), None)
    if unknown is not None:
        raise TraceError(f"{unknown} is not a directory or the name of a run; pass a directory of traces")
    traces = recent_traces(dict.fromkeys(folders or [trace_dir()]), limit, include_opened=not folders)
    return [trace for trace in traces if not names or trace.name in names or trace.directory.parent in folders]


def verdicts_of(traces: Sequence[TraceSummary]) -> dict[Path, RunVerdict]:
    """Return the findings of ended runs; those read before an interrupt are cached."""
    from tui_probe.verdicts.run_verdict import VerdictCache

    cache, verdicts = VerdictCache(), {}
    ended_runs = [trace.directory for trace in traces if not trace.is_running]
    with Progress() as reading:
        try:
            for number, directory in enumerate(ended_runs):
                reading(number / len(ended_runs))
                verdicts[directory] = cache.verdict_of(directory)
        finally:
            cache.keep()
    return verdicts
