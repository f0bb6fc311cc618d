"""``tui-probe new-probe``: a commented start of a probe of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.probe_files.new_probe import write_new_probe

from .output import ExitStatus, put

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The name, and where the probe is to be."""
    parser.add_argument("name", metavar="NAME", help="name of the probe and its file, NAME.py")
    parser.add_argument(
        "--at", metavar="POSITION", default="ld.global",
        help="measure time at these instructions or in these source lines, e.g. attn.py:22-26; default %(default)s",
    )  # fmt: skip
    parser.add_argument("--toml", action="store_true", help="write a TOML file with PTX snippets, NAME.toml")


def run(arguments: argparse.Namespace) -> int:
    """Write the file here, and its name to stdout."""
    path = write_new_probe(Path(), arguments.name, "toml" if arguments.toml else "python", arguments.at)
    put(str(path))
    return ExitStatus.OK
