"""Command and directory of a recorded run, to start it again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tui_probe.errors import UsageError
from tui_probe.trace.run_info import MASK, RunInfo, mask_words, read_run_info

if TYPE_CHECKING:
    from collections.abc import Sequence


class MissingDirectoryError(UsageError):
    """The folder where it ran is not here; ``command`` is what a user may paste in another."""

    def __init__(self, trace: Path, folder: Path, command: str) -> None:
        self.command = command
        super().__init__(f"{trace}: its folder {folder} is not on this machine: go to the program, and run {command}")


def recorded_run(trace: Path, asked: Sequence[str] = ()) -> tuple[RunInfo, Path]:
    """The run of a trace, and its working directory. UsageError where the trace does not say.

    FolderGoneError where that folder is not here.
    ``asked`` are options that choose probes in place of the former ones.
    """
    info = read_run_info(trace / "run.json") or RunInfo()
    if not info.command:
        raise UsageError(f"{trace}: run.json does not say what ran; start it with tui-probe run -- COMMAND")
    if any(MASK in word for word in info.command):
        raise UsageError(
            f"{trace}: secrets of its command line were masked ({MASK}), so it cannot be run again: start it with"
            " tui-probe run -- COMMAND, and with --keep-secrets where traces may hold them"
        )
    folder = Path(info.cwd or ".")
    if not folder.is_dir():
        raise MissingDirectoryError(trace, folder, rerun_command(info, asked))
    return info, folder


def rerun_command(info: RunInfo, asked: Sequence[str]) -> str:
    """The command line that runs it again, for a shell; all of it is visible."""
    former = info.probe.split(", ") if info.probe else ()
    options = asked or [word for probe in former for word in ("-p", probe)]
    return " ".join(map(_shell_word, ["tui-probe", "run", *options, "--", *mask_words(info.command)]))


def _shell_word(word: str) -> str:
    """A word for a shell, with escapes for what a terminal would obey or hide."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = re.sub(r"[\\']", r"\\\g<0>", word)
    return "$'" + "".join(map(_escaped, escaped)) + "'"


def _escaped(character: str) -> str:
    """A character in a word of the form ``$'…'``; one that stands for a byte of a file name becomes that byte."""
    if character.isprintable():
        return character
    how = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", how))
