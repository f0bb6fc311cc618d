"""The user's settings file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.cli.chosen import chosen_settings, setting_problems
from tui_probe.errors import ProbeError
from tui_probe.pages.bandwidth.result_file import read_bandwidth
from tui_probe.probe_files.choices import choose

from . import Item

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.settings import Settings


def setting_items() -> list[Item]:
    """The file, and an item for each thing in it that is not used, or that a command will fail with."""
    settings = chosen_settings()
    items = [
        Item("settings", "warn", problem, "not used; tui-probe help settings lists them all")
        for problem in setting_problems()
    ]
    items += [
        Item("settings", "warn", f"{settings.path}: {problem}", "mend it: commands that need it fail")
        for problem in _named_in_vain(settings)
    ]
    if not items:
        return [Item("settings", "ok", f"{settings.path}{'' if settings.found else ' (there is none: not needed)'}")]
    return items


def _named_in_vain(settings: Settings) -> Iterator[str]:
    """What settings name, where there is no such thing."""
    if settings.probe:
        try:
            choose([settings.probe])
        except ProbeError as error:
            yield f"probe: {error}"
    if settings.bandwidth:
        try:
            read_bandwidth(settings.bandwidth)
        except ProbeError as error:
            yield f"bandwidth: {error}"
    if settings.trace_dir and settings.trace_dir.exists() and not settings.trace_dir.is_dir():
        yield f"trace_dir: {settings.trace_dir} is no folder"
