"""Commands that print or write one document: a walk through a trace, a JSON Schema, a skill file, a probe template.

Each is a class with the functions of a command. What a document needs is imported when it is written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UsageError

from .output import ExitStatus, is_utf8, table_width, width_option, write_stdout

if TYPE_CHECKING:
    import argparse

_SKILL: Final = Path(__file__).parents[1] / "integrations" / "SKILL.md"
_SKILL_NAME: Final = "tui-probe"
"""Name of the skill, which is the name of its directory."""


class Explain:
    """``tui-probe explain``: a walk through a trace, from the files to the numbers."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add the trace and the width of the text."""
        parser.add_argument("trace", nargs="?", default="", metavar="TRACE", help="a trace; default the newest")
        parser.add_argument(
            "--width", type=width_option, metavar="W", help="width in columns; default: terminal width, or 100"
        )
        parser.add_argument("--ascii", action="store_true", help="use ASCII characters only")

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Print the walk."""
        from tui_probe.pages.views.explain import walk_lines

        from .arguments import address_of, open_address

        ascii_only = arguments.ascii or not is_utf8(sys.stdout)
        write_stdout(
            walk_lines(open_address(address_of(arguments.trace)), table_width(arguments)), ascii_only=ascii_only
        )
        return ExitStatus.OK


class Schema:
    """``tui-probe schema``: the JSON Schema of a document."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add the name of the document."""
        parser.add_argument(
            "name", nargs="?", metavar="NAME", help="JSON document, e.g. finding; default: list all names"
        )

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """List the documents, or print the schema of one."""
        from tui_probe.draw.printable import dump_json
        from tui_probe.draw.spans import pad
        from tui_probe.schemas import read_schema, schema_names

        if arguments.name is None:
            name_width = max(map(len, schema_names()))
            write_stdout(f"{pad(name, name_width)}  {read_schema(name)['title']}" for name in schema_names())
        else:
            write_stdout(dump_json(read_schema(arguments.name), indent=1))
        return ExitStatus.OK


class Skill:
    """``tui-probe skill``: a file that teaches an agent to profile a program, change it and compare."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add the directory of skills."""
        parser.add_argument(
            "--install", type=Path, metavar="DIRECTORY",
            help=f"write {_SKILL_NAME}/SKILL.md into this directory of skills, e.g. .claude/skills; default: print it",
        )  # fmt: skip

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Print the file, or write it and print its path. Raises UsageError where it cannot be written."""
        text = _SKILL.read_text(encoding="utf-8")
        if arguments.install is None:
            write_stdout(text)
            return ExitStatus.OK
        path = arguments.install / _SKILL_NAME / "SKILL.md"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; pass a writable directory") from None
        write_stdout(str(path))
        return ExitStatus.OK


class NewProbe:
    """``tui-probe new-probe``: a commented start of a probe of one's own."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add the name of the probe, what it measures, and its language."""
        parser.add_argument("name", metavar="NAME", help="name of the probe and its file, NAME.py")
        parser.add_argument(
            "--at", metavar="POSITION", default="ld.global",
            help="measure time at these instructions or in these source lines, e.g. attn.py:22-26; default %(default)s",
        )  # fmt: skip
        parser.add_argument("--toml", action="store_true", help="write a TOML file with PTX snippets, NAME.toml")

    @staticmethod
    def run(arguments: argparse.Namespace) -> int:
        """Write the file into the current directory, and print its name."""
        from tui_probe.probe_files.new_probe import write_new_probe

        path = write_new_probe(Path(), arguments.name, "toml" if arguments.toml else "python", arguments.at)
        write_stdout(str(path))
        return ExitStatus.OK
