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
from .output import ExitStatus, inform, is_utf8, write_stdout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.bandwidth.measure import Gpu
    from tui_probe.bandwidth.rates import Bandwidth, Rate
    from tui_probe.probekit.page_kinds import Format

MEMORIES: Final = ("memory", "l2", "shared", "host", "disk")
MIN_WIDTH: Final = 60
DEFAULT_STAGES: Final = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of what is measured and how it is written."""
    parser.add_argument(
        "--only",
        type=memories,
        default=MEMORIES,
        metavar="A,B",
        help=f"measure only these parts: {', '.join(MEMORIES)}; default: all",
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


def memories(text: str) -> tuple[str, ...]:
    """``memory,l2``."""
    names = tuple(part.strip() for part in text.split(","))
    unknown = [part for part in names if part not in MEMORIES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(MEMORIES)}")
    return names


def run(arguments: argparse.Namespace) -> int:
    """Measure and print. Raises NoDriverError without a GPU, unless only the disk is asked for."""
    if arguments.repeats < 1 or (arguments.blocks is not None and arguments.blocks < 1):
        arguments.refuse("--repeats and --blocks must be at least 1")
    from tui_probe.bandwidth.measure import Gpu
    from tui_probe.bandwidth.rates import Bandwidth

    on_gpu = any(part != "disk" for part in arguments.only)
    gpu = Gpu(real_driver(arguments.driver)) if on_gpu else None
    rates: list[Rate] = []
    sweep_rates: list[Rate] = []
    if gpu is not None:
        for rate, is_of_sweep in gpu_rates(gpu, arguments):
            (sweep_rates if is_of_sweep else rates).append(rate)
    if "disk" in arguments.only:
        from tui_probe.bandwidth.measure import measure_disk

        rates += measure_disk(arguments.disk, arguments.disk_bytes, arguments.repeats)
    bandwidth = Bandwidth(None if gpu is None else gpu.properties, rates, sweep_rates)
    ascii_only = arguments.format == "table" and not is_utf8(sys.stdout)
    cells = max(MIN_WIDTH, text_width())
    write_stdout(lines(bandwidth, arguments.format, cells, explained=arguments.explain), ascii_only=ascii_only)
    return ExitStatus.OK


def real_driver(path: Path | None) -> Path:
    """The driver. The simulated one has no bandwidth to measure."""
    from tui_probe.launcher.driver import find_driver

    driver = find_driver(path, simulated=False, environment=os.environ)
    if driver.simulated:
        raise NoDriverError(
            f"{driver.path}: the simulated GPU does not model bandwidth; measure on a machine with a GPU"
        )
    return driver.path


def gpu_rates(gpu: Gpu, arguments: argparse.Namespace) -> Iterator[tuple[Rate, bool]]:
    """Yield every rate of the GPU, and whether it is one of the sweep."""
    from tui_probe.bandwidth.measure import GpuBench, buffer_bytes, sweep_points

    size = buffer_bytes(gpu)
    with gpu.device_memory(size) as buffer:
        bench = GpuBench(gpu, arguments.repeats, buffer, size)
        if "memory" in arguments.only:
            inform("measuring device memory")
            yield from ((rate, False) for rate in bench.measure_memory())
        if "l2" in arguments.only:
            yield bench.measure_cache(), False
        if "shared" in arguments.only:
            blocks = arguments.blocks or 2 * gpu.properties.sms
            pairs = sweep_points(gpu) if arguments.auto else [(blocks, DEFAULT_STAGES)]
            inform(f"measuring transfers from device to shared memory: {len(pairs)} configurations")
            rates = [bench.measure_to_shared(*pair) for pair in pairs]
            yield max(rates, key=lambda rate: rate.bytes_per_second), False
            yield from ((rate, True) for rate in rates if arguments.auto)
        if "host" in arguments.only:
            inform("measuring transfers between host and device")
            yield from ((rate, False) for rate in bench.measure_host())


def lines(bandwidth: Bandwidth, form: Format, cells: int, *, explained: bool = False) -> Iterator[str]:
    """All values in one of the forms; the data forms hold the sweep's too."""
    from tui_probe.draw.spans import plain
    from tui_probe.pages.bandwidth_page import SweepPage, bandwidth_page
    from tui_probe.pages.table_page import page_lines
    from tui_probe.verdicts.bandwidth import sweep_from_rates

    yield from page_lines(bandwidth_page(bandwidth, everything=form != "table"), form, width=cells, explained=explained)
    sweep = sweep_from_rates(bandwidth.swept)
    if form == "table" and sweep is not None:
        yield ""
        yield from (plain(line).rstrip() for line in SweepPage(sweep, bandwidth.card, explained=explained).lines(cells))
