"""``tui-probe schema``: the JSON Schema of a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.draw.printable import dump_json
from tui_probe.draw.spans import pad

from .output import ExitStatus, put

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name of the document."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="JSON document, e.g. finding; default: list all names")


def run(arguments: argparse.Namespace) -> int:
    """List the documents, or write the schema of one."""
    from tui_probe.schemas import read_schema, schema_names

    if arguments.name is None:
        widest = max(map(len, schema_names()))
        put(f"{pad(name, widest)}  {read_schema(name)['title']}" for name in schema_names())
    else:
        put(dump_json(read_schema(arguments.name), indent=1))
    return ExitStatus.OK
