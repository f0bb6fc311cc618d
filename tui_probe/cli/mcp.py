"""``tui-probe mcp``: a server of the Model Context Protocol for agents, on stdin and stdout.

The SDK is an optional dependency, so it is imported only here and in the server.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import UsageError

from .output import ExitStatus

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the directories that agents may use."""
    parser.add_argument(
        "--root", type=Path, action="append", metavar="DIRECTORY",
        help="allow tools to start programs and read traces in DIR; may be repeated; default: the current directory",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Serve until stdin closes. Raises UsageError on a terminal, without the SDK, or for a wrong root."""
    if sys.stdin.isatty():
        raise UsageError("tui-probe mcp does not work on a terminal; an agent starts it: see tui-probe help agents")
    roots = arguments.root or [Path()]
    for root in roots:
        if not root.is_dir():
            raise UsageError(f"--root {root} is not a directory")
    try:
        from tui_probe.integrations.mcp_server import Roots, make_server
    except ModuleNotFoundError as error:
        raise UsageError(f"tui-probe mcp needs the package {error.name}: pip install 'tui-probe[mcp]'") from None
    make_server(Roots(roots)).run("stdio")
    return ExitStatus.OK
