"""``tui-probe compare``: two traces, two kernels or two launches against each other."""

from __future__ import annotations

import argparse
import io
import sys
from math import inf
from typing import TYPE_CHECKING

from tui_probe.errors import ChoiceError

from .arguments import address_of, open_address
from .output import (
    ExitStatus,
    Progress,
    add_max_chars_option,
    check_drawing_size,
    height_option,
    inform,
    is_utf8,
    limit_lines,
    limited_json,
    max_chars,
    terminal_size,
    warn,
    width_option,
    write_stdout,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.pages.comparison import Comparison
    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.trace.locate import Address
    from tui_probe.trace.model import Trace

    Sides = tuple[ViewSource, ViewSource] | tuple[Trace, Trace]

FORMATS = ("table", "json", "csv", "md")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sides and the output format."""
    parser.epilog = (
        "A and B are TRACE, TRACE:KERNEL or TRACE:KERNEL@LAUNCH; TRACE is a directory or the name of a run; KERNEL"
        " is an index or a part of a name. Without TRACE, A is in the newest trace, and B is in the trace of A:"
        " tui-probe compare trace:matmul@0 :matmul@5. Exit status 1: --fail-if-worse found a regression, or nothing"
        " is comparable. Exit status 5: no verdict. Possible reasons: simulated times, a time of only one launch,"
        " different kernels, a failed program, or no value that was measured in A and in B."
    )
    parser.add_argument("baseline", metavar="A", help="baseline")
    parser.add_argument("candidate", metavar="B", help="candidate")
    parser.add_argument(
        "--fail-if-worse",
        type=percent,
        metavar="X%",
        help="list regressions on stderr and exit with status 1 if there are any. A regression is a finding that"
        " only B has, a finding whose loss grew by more than X%%, or a metric that is worse by more than X%%."
        " Amounts of work, such as instructions, are compared only if --figures names them. The cost of the probe"
        " is not compared",
    )
    parser.add_argument(
        "--figures", dest="metrics", metavar="KEY,…", help="compare only these metrics, e.g. span_cycles,registers"
    )
    parser.add_argument("--view", metavar="VIEW", help="draw this page of A and B side by side, e.g. timeline")
    parser.add_argument(
        "--height",
        type=height_option,
        metavar="N",
        default=24,
        help="height of a drawing in lines; default %(default)s",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="default %(default)s")
    add_max_chars_option(parser)
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument(
        "--width", type=width_option, metavar="N", help="width of tables; default: terminal width, or 120"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the comparison; nothing else goes to stdout."""
    if arguments.view is not None and arguments.view not in drawings():
        warn(f"error: argument --view: {arguments.view!r} is not a drawing; use {', '.join(drawings())}")
        return ExitStatus.USAGE
    sides = open_sides(arguments.baseline, arguments.candidate)
    if arguments.view is not None and arguments.fail_if_worse is None:
        write_stdout(drawing_lines(sides, arguments))
        return ExitStatus.OK
    comparison = comparison_of(sides)
    if arguments.metrics is not None:
        comparison.keep_only(arguments.metrics.split(","))
    write_stdout(
        drawing_lines(sides, arguments) if arguments.view is not None else comparison_lines(comparison, arguments)
    )
    if not comparison.pairs:
        warn("error: nothing to compare, because no kernel is in both traces")
        return ExitStatus.FAILED
    return ExitStatus.OK if arguments.fail_if_worse is None else report_regressions(comparison, arguments.fail_if_worse)


def drawings() -> tuple[str, ...]:
    """Return the views that can be drawn side by side."""
    from tui_probe.pages import paired_drawings

    return paired_drawings.drawing_names()


def report_regressions(comparison: Comparison, limit: float) -> int:
    """Report what is worse by more than ``limit``, a share, and what is unknown. Return the exit status."""
    from tui_probe.verdicts.comparison_verdict import unsure_changes, worse_changes, worse_findings

    unknown = [change for change in comparison.rows if change.change is None and not change.baseline.of_probe]
    for change in unknown:
        inform(f"not compared: {change.text} (measured in one trace only)")
    if len(unknown) == len(comparison.rows):
        warn("error: nothing to compare, because no metric was measured in both traces")
        return ExitStatus.FAILED
    changes, findings = worse_changes(comparison.rows, limit), worse_findings(comparison.findings, limit)
    for finding in findings:
        warn(f"{finding.outcome if finding.outcome == 'new' else 'worse'} finding: {finding.text}")
    for change in changes:
        warn(f"worse by more than {100 * limit:.4g}%: {change.text}")
    if changes or findings:
        return ExitStatus.FAILED
    if unsure := unsure_changes(comparison.rows, limit):
        for change in unsure:
            warn(f"no verdict: {change.text} (a time of one launch has no known spread; measure 4 launches or more)")
        return ExitStatus.NO_VERDICT
    if reason := comparison.unjudged_reason:
        warn(f"no verdict: {reason}")
        return ExitStatus.NO_VERDICT
    return ExitStatus.OK


def percent(word: str) -> float:
    """Parse ``5%`` or ``5`` as a share. Raises ArgumentTypeError."""
    try:
        number = float(word.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number < inf:
        raise argparse.ArgumentTypeError(f"{word!r} is not a percentage, such as 5%")
    return number / 100


def open_sides(baseline: str, candidate: str) -> Sides:
    """Open both sides: two traces, or a kernel of each. Raises ChoiceError for a trace against a kernel."""
    baseline_address, candidate_address = address_of(baseline), address_of(candidate)
    baseline_trace = open_address(baseline_address)
    candidate_trace = baseline_trace if candidate_address.path is None else open_address(candidate_address)
    if baseline_address.is_whole and candidate_address.is_whole:
        return baseline_trace, candidate_trace
    if baseline_address.is_whole or candidate_address.is_whole:
        raise ChoiceError("a trace and a kernel cannot be compared; name a kernel in A and in B: TRACE:KERNEL")
    return open_source(baseline_trace, baseline_address), open_source(candidate_trace, candidate_address)


def comparison_of(sides: Sides) -> Comparison:
    """Compare the values of both sides."""
    from tui_probe.pages.comparison import compare_sources, compare_traces
    from tui_probe.probekit.page_kinds import ViewSource

    with Progress() as reading:
        match sides:
            case (ViewSource() as baseline, ViewSource() as candidate):
                return compare_sources(baseline, candidate, reading)
            case (baseline, candidate):
                return compare_traces(baseline, candidate, reading)


def drawing_lines(sides: Sides, arguments: argparse.Namespace) -> Iterator[str]:
    """Return the lines of a drawing of both sides."""
    from tui_probe.pages.comparison_tables import traces_warning
    from tui_probe.pages.paired_drawings import open_pair
    from tui_probe.pages.view_output import csv_of_view, text_lines, view_lines
    from tui_probe.probekit.page_kinds import ViewSource

    baseline, candidate = sides
    if not isinstance(baseline, ViewSource) or not isinstance(candidate, ViewSource):
        raise ChoiceError("--view needs a kernel in A and in B: TRACE:KERNEL")
    _warn_if(traces_warning(baseline.trace, candidate.trace))
    with Progress() as reading:
        view = open_pair(arguments.view, baseline, candidate, reading)
    if arguments.format == "csv":
        return csv_of_view(view)
    if arguments.format == "json":
        from tui_probe.draw.printable import dump_json

        return iter([dump_json(view.record())])
    width, height = arguments.width or terminal_size((120, 40)).columns, arguments.height
    check_drawing_size(width, height)
    return text_lines(view_lines(view, width, height, ascii_only=arguments.ascii or not is_utf8(sys.stdout)))


def _warn_if(failure: str) -> None:
    """Warn on stderr that one of the programs failed, which formats show nowhere or in each row only."""
    if failure:
        warn(f"warning: {failure}")


def open_source(trace: Trace, address: Address) -> ViewSource:
    """The kernel, or the launch."""
    from tui_probe.pages.views import kind_of
    from tui_probe.probekit.probe_results import choose_target

    return choose_target(trace, kind_of("summary"), address.kernel, address.launch).source


def comparison_lines(comparison: Comparison, arguments: argparse.Namespace) -> Iterator[str]:
    """The lines of the form that was asked for."""
    from tui_probe.draw.table import SCHEMA, SCHEMA_VERSION, as_json
    from tui_probe.pages.view_output import csv_of_view, text_lines, view_lines

    if arguments.format != "table" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if arguments.format == "json":
        record = comparison.record()
        if max_chars(arguments) is not None:
            document = {"schema": SCHEMA, "version": SCHEMA_VERSION, "page": "compare", **record}
            return iter([limited_json(document, arguments, keep=("findings",))])
        rows = record.pop("figures")
        return as_json({"page": "compare", **record}, "figures", rows)
    if arguments.format == "csv":
        _warn_if(comparison.warning)
        return limit_lines(csv_of_view(comparison), arguments, csv=True)
    if arguments.format == "md":
        return limit_lines(comparison.markdown(), arguments)
    width = arguments.width or max(40, terminal_size().columns)
    ascii_only = arguments.ascii or not is_utf8(sys.stdout)
    return limit_lines(text_lines(view_lines(comparison, width, None, ascii_only=ascii_only)), arguments)
