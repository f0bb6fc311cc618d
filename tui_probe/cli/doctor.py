"""``tui-probe doctor``: what works on this machine, and what to do where something does not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from tui_probe import __version__
from tui_probe.draw.printable import dump_json

from .checks.cache import cache_items, clear_cache
from .checks.gpu import counter_items, driver_items, gpu_items
from .checks.machine_code import machine_code_items
from .checks.package import hook_items, package_items, simulator_items
from .checks.preferences import setting_items
from .checks.terminal import terminal_items
from .checks.tools import tool_items
from .output import inform, put
from .reading import Reading
from .status import ExitStatus

if TYPE_CHECKING:
    import argparse

    from .checks import Item

CHECKS = (
    driver_items,
    gpu_items,
    counter_items,
    tool_items,
    hook_items,
    simulator_items,
    terminal_items,
    setting_items,
    package_items,
    cache_items,
    machine_code_items,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default %(default)s")
    parser.add_argument(
        "--clear-cache", action="store_true", help="empty the cache of prepared kernels, and check nothing"
    )


def run(arguments: argparse.Namespace) -> int:
    """0 if a command can be profiled here, on a GPU or on the simulated one; 3 if not."""
    if arguments.clear_cache:
        inform(clear_cache())
        return ExitStatus.OK
    items = found()
    works = can_profile(items)
    put(as_json(items, works) if arguments.format == "json" else as_table(items, works))
    return ExitStatus.OK if works else ExitStatus.NO_DRIVER


def found() -> list[Item]:
    """What all checks find; takes seconds, since some start a process."""
    items: list[Item] = []
    with Reading("checking") as reading:
        for number, check in enumerate(CHECKS):
            reading(number / len(CHECKS))
            items += check()
    return items


def can_profile(items: list[Item]) -> bool:
    """The hook, and something for it to stand in for."""
    working = {item.name for item in items if item.state == "ok"}
    return "hook" in working and not working.isdisjoint({"driver", "simulated GPU"})


def as_table(items: list[Item], works: bool) -> str:
    width = max(len(item.name) for item in items)
    lines = []
    for item in items:
        lines.append(f"{item.name:<{width}}  {item.state:<8}  {item.found}")
        if item.advice:
            lines.append(f"{'':<{width}}            → {item.advice}")
    lines.append("")
    lines.append("tui-probe can profile here." if works else "tui-probe cannot profile here; see what is missing.")
    return "\n".join(lines) + "\n"


def as_json(items: list[Item], works: bool) -> str:
    """``{"version": 1, "tool": …, "can_profile": …, "items": [{"name", "state", "found", "advice"}, …]}``."""
    record = {"version": 1, "tool": __version__, "can_profile": works, "items": [asdict(item) for item in items]}
    return dump_json(record, indent=1) + "\n"
