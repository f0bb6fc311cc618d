"""``tui-probe skill``: a file that teaches an agent to profile a program, change it and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui_probe.errors import UsageError

from .output import ExitStatus, put

if TYPE_CHECKING:
    import argparse

_SKILL: Final = Path(__file__).parents[1] / "integrations" / "SKILL.md"
_NAME: Final = "tui-probe"
"""Name of the skill, which is the name of its directory."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the directory of skills."""
    parser.add_argument(
        "--install", type=Path, metavar="DIRECTORY",
        help=f"write {_NAME}/SKILL.md into this directory of skills, e.g. .claude/skills; default: print it",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Print the file, or write it and print its path. Raises UsageError where it cannot be written."""
    text = _SKILL.read_text(encoding="utf-8")
    if arguments.install is None:
        put(text)
        return ExitStatus.OK
    path = arguments.install / _NAME / "SKILL.md"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; pass a writable directory") from None
    put(str(path))
    return ExitStatus.OK
