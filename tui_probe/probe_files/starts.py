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

Language = Literal["python", "toml"]

_PLACE: Final = re.compile(r"^[^:]*, line \d+: ")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TITLE: Final = "How long each warp is between two places of a kernel"
_PYTHON: Final = '''\
"""{title}.

This file is compiled by tui-probe, never run as Python.

{use}
"""

from tui_probe.dsl import Map, clock, probe, u64

# Registers of each thread, with the values that they begin with.
began: u64 = 0
spent: u64 = 0


# What is kept: here a record per warp. level="thread" keeps one per thread, cap=16 up to 16 of them.
@Map(level="warp")
class {name}:
    cycles: u64


# Where: "kernel" is its entry and exits; "ld.global:st.global" instructions, by opcode and modifiers; "attn.py:22" or
# "attn.py:22-26" lines of source (compile with -lineinfo); "block" and "loop" the start of basic blocks and loops.
@probe(pos="{position}", before=True)
def enter():
    began = clock()


@probe(pos="{position}")
def leave():
    spent = spent + (clock() - began)


@probe(pos="kernel")
def finish():
    {name}.save(spent)
'''
_TOML: Final = '''\
# How long each warp is between two places of a kernel.
#
{use}

[about]
title = "How long each warp is between two places of a kernel"
measures = "cycles that each warp spends there"
unit = "cycles"

# What is kept: here a record per warp. level = "thread" keeps one per thread, cap = 16 up to 16 of them.
[map.{name}]
level = "warp"

[map.{name}.regs]
cycles = "u64"

# Registers are declared where they are first needed, and hold from then on.
[probe.whole]
position = "kernel"
before = """
.reg .b64 %began, %spent, %now;
mov.u64 %spent, 0;
"""
after = "SAVE [ {name} ] {{%spent}};"

# Where: "ld.global:st.global" are instructions, by opcode and modifiers; "attn.py:22" or "attn.py:22-26" lines of
# source (compile with -lineinfo); "block" and "loop" the start of basic blocks and loops.
[probe.there]
position = "{position}"
before = "mov.u64 %began, %clock64;"
after = """
mov.u64 %now, %clock64;
sub.u64 %now, %now, %began;
add.u64 %spent, %spent, %now;
"""
'''
_TEXTS: Final[dict[Language, tuple[str, str]]] = {"python": (".py", _PYTHON), "toml": (".toml", _TOML)}


def start_of(name: str, language: Language, position: str) -> tuple[str, str]:
    """The name of the file and its text, which is a probe that works.

    Raises UsageError for a name that a probe cannot have, and for a position that is none or can be nowhere.
    """
    _refuse_name(name)
    _refuse_position(position)
    suffix, text = _TEXTS[language]
    file = name + suffix
    use = _use(file, "#     " if language == "toml" else "    ")
    text = text.format(name=name, position=position, title=_TITLE, use=use)
    try:
        doubtful = doubts(read_probe(text.encode(), Path(file)))
    except ProbeFileError as error:
        raise UsageError(f"{name!r} is no name for a probe: {_PLACE.sub('', str(error))}") from error
    if doubtful:
        raise UsageError(f"--at {doubtful[0]}")
    return file, text


def text_between(lines: str) -> str:
    """The text of a probe in Python for lines of source, ``FILE:FIRST-LAST``. Its map is called the same for any."""
    title = f"How long each warp is in {lines}, with what was inlined there"
    use = f"It was written for these lines. One to change: tui-probe new-probe NAME --at {lines}"
    return _PYTHON.format(name="between", position=lines, title=title, use=use)


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
