"""What ``tui-probe new-probe`` writes: a probe that works as it is, with comments on what else there is."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Final, Literal

from tui_probe.engine.positions import POSITIONS, parse_positions
from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.probe_files.doubts import doubts
from tui_probe.probe_files.folders import MAIN, built_in_files, installed_files
from tui_probe.probe_files.loading import read_probe
from tui_probe.probe_files.start_texts import PYTHON, TITLE, TOML

Language = Literal["python", "toml"]

_PLACE: Final = re.compile(r"^[^:]*, line \d+: ")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXTS: Final[dict[Language, tuple[str, str]]] = {"python": (".py", PYTHON), "toml": (".toml", TOML)}


def start_of(name: str, language: Language, position: str) -> tuple[str, str]:
    """The name of the file and its text, which is a probe that works.

    Raises UsageError for a name that a probe cannot have, and for a position that is none or can be nowhere.
    """
    _refuse_name(name)
    _refuse_position(position)
    suffix, text = _TEXTS[language]
    file = name + suffix
    use = _use(file, "#     " if language == "toml" else "    ")
    text = text.format(name=name, position=position, title=TITLE, use=use)
    try:
        doubtful = doubts(read_probe(text.encode(), Path(file)))
    except ProbeFileError as error:
        raise UsageError(f"{name!r} is no name for a probe: {_PLACE.sub('', str(error))}") from error
    if doubtful:
        raise UsageError(f"--at {doubtful[0]}")
    return file, text


def _use(file: str, margin: str) -> str:
    """What to do with the file, a line each."""
    commands = {
        f"tui-probe check {file} kernels.ptx": "does it fit? How many places does each position match?",
        f"tui-probe run -p {file} -- COMMAND": "then: tui-probe show results",
        "tui-probe help probe-language": "all of the language",
    }
    cells = max(map(len, commands))
    return "\n".join(f"{margin}{command:<{cells}}   {words}" for command, words in commands.items())


def _refuse_name(name: str) -> None:
    """What is no word, or would be taken for another probe."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} is no name for a probe: use letters, digits and _")
    if name == MAIN:
        raise UsageError(f"{name!r} is no name for a probe: {MAIN}.py and {MAIN}.toml make a folder a probe")
    if name in built_in_files() or name in installed_files():
        raise UsageError(f"{name} is a probe that comes along (tui-probe probes {name}): choose another name")


def _refuse_position(text: str) -> None:
    try:
        positions = parse_positions(text)
    except ValueError as error:
        raise UsageError(f"--at: {error}; write {POSITIONS}") from error
    if any(position.is_block for position in positions):
        raise UsageError(
            f"--at {text}: blocks and loops have a start alone, and time needs an end: name instructions or lines"
        )


def write_start(folder: Path, name: str, language: Language, position: str) -> Path:
    """Write the file into ``folder``. Raises UsageError where it is there already, and OSError."""
    file, text = start_of(name, language, position)
    path = folder / file
    try:
        with path.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already: choose another name") from None
    return path
