"""``tui-probe roofline``: kernels next to what the machine's memory and tensor cores can do."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ImportFileError
from tui_probe.probekit.page_kinds import FORMATS
from tui_probe.trace.locate import parse_address

from .arguments import open_addressed_kernels, resolve_name, user_settings
from .import_command import text_width
from .output import ExitStatus, is_utf8, write_stdout
from .screen import add_screen_options, show, wants_screen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tui_probe.bandwidth.rates import Bandwidth
    from tui_probe.probekit.page_kinds import Format
    from tui_probe.trace.model import Kernel
    from tui_probe.verdicts.limiter import NcuBytes
    from tui_probe.verdicts.roofline import Roof, RooflinePoint

MIN_WIDTH: Final = 60
CHART_ROWS: Final = 20
_SCALES: Final = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The traces and the two limits."""
    parser.add_argument(
        "trace", nargs="*", metavar="TRACE",
        help="traces of one program, recorded with counting probes; at least one trace must have times;"
            " TRACE:KERNEL selects kernels; default: the newest trace",
    )  # fmt: skip
    parser.add_argument(
        "--bandwidth", metavar="RATE|FILE",
        help="bytes per second, e.g. 4.4T, or an output file of `tui-probe bandwidth --format json`; default: the file"
        " named in settings.toml, else the GPU's data sheet",
    )  # fmt: skip
    parser.add_argument(
        "--ncu", action="append", default=[], type=Path, metavar="FILE.csv",
        help="ncu table of the program with dram__bytes.sum and lts__t_bytes.sum (`run --ncu`), to separate DRAM from"
        " L2; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--peak", type=rate, metavar="RATE", help="operations per second, e.g. 989T; default: peak of the GPU"
    )
    parser.add_argument("--format", choices=FORMATS, help="print text or data, and open no screen; default table")
    parser.add_argument("--explain", action="store_true", help="explain how to read the page")
    add_screen_options(parser)
    parser.set_defaults(refuse=parser.error)


def rate(text: str) -> float:
    """``989T``, ``4.4e12``: units of 1000."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?(?:E\d+)?)([KMGTP]?)(?:B?/S)?", text.strip().upper())
    if match is None or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a file nor a rate; write a number, e.g. 4.4T")
    return float(match[1]) * _SCALES[match[2]]


def run(arguments: argparse.Namespace) -> int:
    """Show the roofline on the screen, or write it; nothing else goes to stdout."""
    from tui_probe.pages.roofline_page import open_roofline
    from tui_probe.verdicts.roofline import device_roof, roofline_points

    traces = [open_addressed_kernels(resolve_name(parse_address(word))) for word in arguments.trace or [""]]
    try:
        bandwidth = measured_bandwidth(arguments.bandwidth or user_settings().bandwidth)
    except argparse.ArgumentTypeError as error:
        arguments.refuse(str(error))
    counters = ncu_counters(arguments.ncu) if arguments.ncu else lambda _: None
    points, roof = roofline_points(traces, bandwidth, counters), device_roof(traces, bandwidth, arguments.peak)
    if arguments.format is None and wants_screen(arguments):
        title = "roofline of " + ", ".join(trace.directory.name for trace in traces)
        directories = tuple(trace.directory for trace in traces)
        return show(arguments, traces=directories, imported=open_roofline(points, roof, title))
    form: Format = arguments.format or "table"
    ascii_only = arguments.ascii or not is_utf8(sys.stdout)
    write_stdout(lines(points, roof, form, explained=arguments.explain), ascii_only=ascii_only and form == "table")
    return ExitStatus.OK


def ncu_counters(files: list[Path]) -> Callable[[Kernel], NcuBytes | None]:
    """Read the kernels of Nsight Compute tables. Raises ImportFileError for other files."""
    from tui_probe.nsight.importers.ncu import read_ncu
    from tui_probe.nsight.pages.trace_counters import counters_of

    return counters_of(read_ncu(files))


def measured_bandwidth(source: str | Path | None) -> Bandwidth | float | None:
    """The bandwidth as given, or all that a file of ``tui-probe bandwidth`` has; None if none was given."""
    from tui_probe.verdicts.bandwidth import read_bandwidth

    if source is None:
        return None
    path = Path(source)
    if not path.is_file():
        return rate(str(source))
    bandwidth = read_bandwidth(path)
    if bandwidth.rate("memory_read") is None:
        raise ImportFileError(f"{path} has no memory_read; measure it with tui-probe bandwidth --only memory")
    return bandwidth


def lines(points: Sequence[RooflinePoint], roof: Roof, form: Format, *, explained: bool = False) -> Iterator[str]:
    """The points in one of the forms."""
    from tui_probe.draw.csv_table import as_csv
    from tui_probe.draw.spans import wrap
    from tui_probe.draw.table import as_json, as_markdown, as_record, table
    from tui_probe.pages import roofline_page as page
    from tui_probe.pages.roofline_page import ROOFLINE_EXPLANATION, no_points_text

    columns = page.roofline_columns(points, roof)
    if form == "json":
        yield from as_json(page.roof_record(roof), "roofline", (as_record(columns, point) for point in points))
    elif form == "csv":
        yield from as_csv(columns, points)
    elif form == "md":
        yield from as_markdown(columns, points)
    elif not points:
        yield no_points_text()
    else:
        cells = max(MIN_WIDTH, text_width())
        yield from page.roof_lines(roof, cells)
        yield ""
        yield from table(columns, points, cells)
        yield ""
        yield from page.verdict_lines(points, cells)
        yield ""
        yield from page.roofline_text(points, roof, cells, CHART_ROWS)
        for paragraph in ROOFLINE_EXPLANATION if explained else ():
            yield ""
            yield from wrap(paragraph, cells)
