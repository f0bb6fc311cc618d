"""Screen of a run or a trace: display options, opening it, and the command that the user requested on it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tui_probe.settings import PALETTES

from .arguments import user_settings, warn_about_settings
from .output import close_lost_terminal, on_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.launcher.supervised_target import SupervisedTarget
    from tui_probe.probekit.page_kinds import PageSet
    from tui_probe.trace.locate import Address
    from tui_probe.ui import Appearance
    from tui_probe.ui.session import OpenTrace, RerunRequest, Session


def add_screen_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of showing a run or a trace, for every command that shows one."""
    display = parser.add_argument_group("display")
    display.add_argument("--no-ui", action="store_true", help="print the report without opening a screen")
    display.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    display.add_argument(
        "--low-bandwidth",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="redraw less often and ignore the mouse; default: on while the link is slow",
    )
    display.add_argument(
        "--mouse",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="use the mouse; default: on, except over SSH",
    )
    display.add_argument("--palette", choices=PALETTES, default=None, help="colors; default dark")


def wants_screen(arguments: argparse.Namespace) -> bool:
    """Return whether there is a terminal, and the user wants the screen on it."""
    return on_terminal() and not arguments.no_ui


def show(
    arguments: argparse.Namespace,
    target: SupervisedTarget | None = None,
    traces: tuple[Path, ...] = (),
    imported: PageSet | None = None,
    *,
    watching: bool = False,
    address: Address | None = None,
    notice: str = "",
) -> int:
    """Show a running target, traces, or imported files, until the user quits. Return the exit status of the screen.

    The screen begins at the kernel and the launch that ``address`` names, with the message ``notice``. A run that was
    requested on a screen begins at ``arguments.begin``.

    A command returns only an exit status. So the run or trace that the user requested on this screen, or None, is
    left in ``arguments.next_request``, where ``main.dispatch`` finds it after the command.
    """
    from tui_probe.ui.session import Session

    session = Session(
        target=target, traces=traces, imported=imported, watching=watching, address=address, notice=notice
    )
    session.from_home = arguments.from_home if "from_home" in arguments else False
    session.begin = arguments.begin if "begin" in arguments else None
    status = show_session(session, appearance_of(arguments))
    arguments.next_request = session.next_request
    return status


def show_session(session: Session, appearance: Appearance) -> int:
    """Show the screen of a session and return its status; later messages skip a terminal that is gone."""
    from tui_probe import ui

    status = ui.run(session, appearance)
    close_lost_terminal()
    return status


def requested_command(request: RerunRequest | OpenTrace, arguments: argparse.Namespace) -> list[str]:
    """Return the command line of a run or trace requested on the screen, with the display options of ``arguments``."""
    from tui_probe.ui.session import OpenTrace

    display_options = ["--ascii"] if arguments.ascii else []
    display_options += ["--palette", arguments.palette] if arguments.palette else []
    for option, is_on in (("low-bandwidth", arguments.low_bandwidth), ("mouse", arguments.mouse)):
        display_options += [] if is_on is None else [f"--{option}" if is_on else f"--no-{option}"]
    if isinstance(request, OpenTrace):
        return ["open", *display_options, str(request.trace)]
    return ["run", *display_options, "--again", str(request.trace), *request.options]


def appearance_of(arguments: argparse.Namespace) -> Appearance:
    """Return the looks: options, else environment, else settings, whose faults are reported."""
    from tui_probe.ui import Appearance

    warn_about_settings()
    return Appearance.from_environment(
        user_settings(),
        ascii_only=arguments.ascii or None,
        low_bandwidth=arguments.low_bandwidth,
        mouse=arguments.mouse,
        palette=arguments.palette,
    )
