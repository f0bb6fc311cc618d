"""Showing a run or a trace: on the screen where there is a terminal, as text elsewhere."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tui_probe.settings import PALETTES

from .chosen import chosen_settings, tell_problems
from .output import let_go_of_lost_terminal, on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.launcher.held_target import HeldTarget
    from tui_probe.pages.imported import Imported
    from tui_probe.trace.address import Address
    from tui_probe.ui import Appearance
    from tui_probe.ui.asked import Again
    from tui_probe.ui.feed import Session


def add_screen_options(parser: argparse.ArgumentParser) -> None:
    """How a run or a trace is shown, for every command that shows one."""
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--no-ui", action="store_true", help="no screen, even on a terminal")
    shown.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    shown.add_argument(
        "--low-bandwidth",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="redraw less often and ignore the mouse, or never do; default: only while the link is slow",
    )
    shown.add_argument(
        "--mouse",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="use the mouse, or leave it to the terminal",
    )
    shown.add_argument("--palette", choices=PALETTES, default=None, help="colours; default dark")


def wants_screen(arguments: argparse.Namespace) -> bool:
    """Is there a terminal, and is the screen wanted on it?"""
    return on_terminal() and not arguments.no_ui


def show(
    arguments: argparse.Namespace,
    target: HeldTarget | None = None,
    traces: tuple[Path, ...] = (),
    imported: Imported | None = None,
    *,
    watching: bool = False,
    at: Address | None = None,
    notice: str = "",
) -> int:
    """Show a running target, traces, or imported files, until the user quits. Returns what ``ui.run`` returns.

    The screen begins at the kernel and the launch that ``at`` names, and says ``notice`` there; of a run that was asked
    for on a screen at ``arguments.begin``. What the user wants to be run behind it is in ``arguments.again_asked``.
    """
    from tui_probe.ui.feed import Session

    session = Session(target=target, traces=traces, imported=imported, watching=watching, at=at, notice=notice)
    session.from_home = arguments.from_home if "from_home" in arguments else False
    session.begin = arguments.begin if "begin" in arguments else None
    status = show_session(session, appearance_of(arguments))
    arguments.again_asked = session.again
    return status


def show_session(session: Session, appearance: Appearance) -> int:
    """The same of a session, and no word to a terminal that is gone."""
    from tui_probe import ui

    status = ui.run(session, appearance)
    let_go_of_lost_terminal()
    return status


def words_for_again(arguments: argparse.Namespace) -> list[str]:
    """The command line of the run that was asked for on the screen, with how that looked."""
    again: Again = arguments.again_asked
    looks = ["--ascii"] if arguments.ascii else []
    looks += ["--palette", arguments.palette] if arguments.palette else []
    for option, said in (("low-bandwidth", arguments.low_bandwidth), ("mouse", arguments.mouse)):
        looks += [] if said is None else [f"--{option}" if said else f"--no-{option}"]
    return ["run", *looks, "--again", str(again.trace), *again.options]


def appearance_of(arguments: argparse.Namespace) -> Appearance:
    """How the screen looks: as the options say, else the environment, else the settings, whose faults are told."""
    from tui_probe.ui import Appearance

    tell_problems()
    return Appearance.from_environment(
        chosen_settings(),
        ascii_only=arguments.ascii or None,
        low_bandwidth=arguments.low_bandwidth,
        mouse=arguments.mouse,
        palette=arguments.palette,
    )
