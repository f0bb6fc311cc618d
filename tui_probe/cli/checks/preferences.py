"""The user's settings file."""

from __future__ import annotations

from tui_probe.cli.chosen import chosen_settings, setting_problems

from . import Item


def setting_items() -> list[Item]:
    """The file, and an item for each thing in it that is not used."""
    settings = chosen_settings()
    problems = setting_problems()
    if not problems:
        return [Item("settings", "ok", f"{settings.path}{'' if settings.found else ' (there is none: not needed)'}")]
    return [
        Item("settings", "warn", problem, "not used; tui-probe help settings lists them all") for problem in problems
    ]
