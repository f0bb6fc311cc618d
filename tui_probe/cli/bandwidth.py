"""``tui-probe bandwidth``: what this machine's memories can carry, measured."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import NoDriverError
from tui_probe.probekit.page_kinds import FORMATS

from .arguments import size
from .import_command import text_width
from .output import ExitStatus, inform, put, speaks_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.bandwidth.measure import Gpu
    from tui_probe.bandwidth.rates import Bandwidth, Rate
    from tui_probe.probekit.page_kinds import Format

PARTS: Final = ("memory", "l2", "shared", "host", "disk")
LEAST_WIDTH: Final = 60
USUAL_STAGES: Final = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of what is measured and how it is written."""
    parser.add_argument(
        "--only",
        type=parts,
        default=PARTS,
        metavar="A,B",
        help=f"measure only these parts: {', '.join(PARTS)}; default: all",
    )
    parser.add_argument(
        "--auto",
        action="store_true",
        help="find the configuration with the highest bandwidth from device to shared memory",
    )
    parser.add_argument(
        "--blocks", type=int, metavar="N", help="number of blocks that load to shared memory; default: two per SM"
    )
    parser.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="number of timed repeats; default %(default)s"
    )
    parser.add_argument(
        "--disk", type=Path, default=Path(), metavar="DIR", help="write the test file of the disk measurement in DIR"
    )
    parser.add_argument(
        "--disk-bytes",
        type=size,
        default=256 << 20,
        metavar="SIZE",
        help="size of the test file of the disk measurement; default 256M",
    )
    parser.add_argument("--driver", type=Path, metavar="PATH", help="use this libcuda.so.1")
    parser.add_argument("--format", choices=FORMATS, default="table", help="default %(default)s")
    parser.add_argument("--explain", action="store_true", help="explain how to read the result")
    parser.set_defaults(refuse=parser.error)


def parts(text: str) -> tuple[str, ...]:
    """``memory,l2``."""
    chosen = tuple(part.strip() for part in text.split(","))
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(PARTS)}")
    return chosen


def run(arguments: argparse.Namespace) -> int:
    """Measure and print. Raises NoDriverError without a GPU, unless only the disk is asked for."""
    if arguments.repeats < 1 or (arguments.blocks is not None and arguments.blocks < 1):
        arguments.refuse("--repeats and --blocks must be at least 1")
    from tui_probe.bandwidth.measure import Gpu
    from tui_probe.bandwidth.rates import Bandwidth

    on_gpu = any(part != "disk" for part in arguments.only)
    gpu = Gpu(real_driver(arguments.driver)) if on_gpu else None
    rates: list[Rate] = []
    swept: list[Rate] = []
    if gpu is not None:
        for rate, of_sweep in gpu_rates(gpu, arguments):
            (swept if of_sweep else rates).append(rate)
    if "disk" in arguments.only:
        from tui_probe.bandwidth.measure import measure_disk

        rates += measure_disk(arguments.disk, arguments.disk_bytes, arguments.repeats)
    measured = Bandwidth(None if gpu is None else gpu.properties, rates, swept)
    plain = arguments.format == "table" and not speaks_utf8(sys.stdout)
    cells = max(LEAST_WIDTH, text_width())
    put(lines(measured, arguments.format, cells, explained=arguments.explain), ascii_only=plain)
    return ExitStatus.OK


def real_driver(chosen: Path | None) -> Path:
    """The driver. The simulated one has no bandwidth to measure."""
    from tui_probe.launcher.driver import find_driver

    driver = find_driver(chosen, simulated=False, environment=os.environ)
    if driver.simulated:
        raise NoDriverError(
            f"{driver.path}: the simulated GPU does not model bandwidth; measure on a machine with a GPU"
        )
    return driver.path


def gpu_rates(gpu: Gpu, arguments: argparse.Namespace) -> Iterator[tuple[Rate, bool]]:
    """Yield every rate of the GPU, and whether it is one of the sweep."""
    from tui_probe.bandwidth.measure import GpuBench, buffer_bytes, sweep_points

    room = buffer_bytes(gpu)
    with gpu.device_memory(room) as buffer:
        bench = GpuBench(gpu, arguments.repeats, buffer, room)
        if "memory" in arguments.only:
            inform("measuring device memory")
            yield from ((rate, False) for rate in bench.measure_memory())
        if "l2" in arguments.only:
            yield bench.measure_cache(), False
        if "shared" in arguments.only:
            blocks = arguments.blocks or 2 * gpu.properties.sms
            pairs = sweep_points(gpu) if arguments.auto else [(blocks, USUAL_STAGES)]
            inform(f"measuring transfers from device to shared memory: {len(pairs)} configurations")
            measured = [bench.measure_to_shared(*pair) for pair in pairs]
            yield max(measured, key=lambda rate: rate.bytes_per_second), False
            yield from ((rate, True) for rate in measured if arguments.auto)
        if "host" in arguments.only:
            inform("measuring transfers between host and device")
            yield from ((rate, False) for rate in bench.measure_host())


def lines(measured: Bandwidth, form: Format, cells: int, *, explained: bool = False) -> Iterator[str]:
    """All values in one of the forms; the data forms hold the sweep's too."""
    from tui_probe.draw.spans import plain
    from tui_probe.pages.bandwidth_page import SweepPage, bandwidth_page
    from tui_probe.pages.table_page import page_lines
    from tui_probe.verdicts.bandwidth import sweep_from_rates

    yield from page_lines(bandwidth_page(measured, everything=form != "table"), form, width=cells, explained=explained)
    sweep = sweep_from_rates(measured.swept)
    if form == "table" and sweep is not None:
        yield ""
        yield from (plain(line).rstrip() for line in SweepPage(sweep, measured.card, explained=explained).lines(cells))
