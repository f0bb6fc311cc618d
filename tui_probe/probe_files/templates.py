"""Texts of the probes that ``new-probe`` and ``run --between`` write."""

from __future__ import annotations

import hashlib
import posixpath
import re
from typing import TYPE_CHECKING, Final

from tui_probe.errors import ProbeFileError, UsageError
from tui_probe.trace.user_state import update_state

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE_TITLE: Final = "Time that each warp spends between two places of a kernel"
PYTHON_TEMPLATE: Final = '''\
"""{title}.

This file is compiled by tui-probe, never run as Python.

{use}
"""

from tui_probe.dsl import Map, clock, probe, u64

# Registers of each thread, with their first values.
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
TOML_TEMPLATE: Final = '''\
# Time that each warp spends between two places of a kernel.
#
{use}

[about]
title = "Time that each warp spends between two places of a kernel"
measures = "cycles that each warp spends there"
unit = "cycles"

# What is kept: here a record per warp. level = "thread" keeps one per thread, cap = 16 up to 16 of them.
[map.{name}]
level = "warp"

[map.{name}.regs]
cycles = "u64"

# A register is declared where it is first used, and keeps its value.
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


def line_range_text(lines: str) -> str:
    """The text of a probe in Python for lines of source, ``FILE:FIRST-LAST``. Its map is called the same for any."""
    title = f"Time that each warp spends in {lines}, including inlined code"
    use = f"Generated for these lines. To get a file to edit: tui-probe new-probe NAME --at {lines}"
    return PYTHON_TEMPLATE.format(name="between", position=lines, title=title, use=use)


# The probe behind ``run --between attn.py:22-26``: what ``new-probe`` writes, with the words for these lines.
#
# Its name has its lines, ``between=attn.py:22-26``, wherever a probe is named: in ``run.json``, and behind ``-p``.
# Its file is kept in the user's state folder, and written again where it is missing.

LINE_RANGE_PREFIX: Final = "between="
_LINE_RANGE: Final = re.compile(r"(?P<file>[^:]+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_UNSAFE_CHARACTERS: Final = re.compile(r"[\"\\\x00-\x1f\x7f]")
_MAX_NAME_LENGTH: Final = 40
"""Characters of the lines that are in the name of the file."""


def line_range_probe(text: str, option: str = "--between") -> str:
    """Return the name of the probe of ``FILE:FIRST-LAST``, the value of ``option``.

    Raises UsageError, which names the option, for a text that is not of this form.
    """
    match = _LINE_RANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option} {text}: write FILE:FIRST-LAST, such as attn.py:22-26, or FILE:LINE")
    if _UNSAFE_CHARACTERS.search(match["file"]):
        raise UsageError(
            f"{option} {text}: the file name contains a quote, backslash or control character; rename the file"
        )
    first, last = sorted((int(match["first"]), int(match["last"] or match["first"])))
    if not first:
        raise UsageError(f"{option} {text}: lines count from 1")
    file = re.sub(r"^(\.\./)+", "", posixpath.normpath(match["file"]))
    return f"{LINE_RANGE_PREFIX}{file}:{first}" + (f"-{last}" if last > first else "")


def line_range_of(name: str) -> str:
    """The lines that a probe of this name is for; "" where it is another probe."""
    return name.removeprefix(LINE_RANGE_PREFIX) if name.startswith(LINE_RANGE_PREFIX) else ""


def write_line_range_probe(name: str) -> Path:
    """The file of a probe that is named by its lines. Raises UsageError, and ProbeFileError where it cannot be kept."""
    lines = line_range_of(line_range_probe(line_range_of(name)))
    slug = re.sub(r"\W+", "_", lines, flags=re.ASCII).strip("_")[-_MAX_NAME_LENGTH:]
    mark = hashlib.sha1(lines.encode(), usedforsecurity=False).hexdigest()[:6]
    name, text = f"probes/between_{slug}_{mark}.py", line_range_text(lines)
    try:
        return update_state(name, text)
    except OSError as error:
        raise ProbeFileError(
            f"--between: cannot save the generated probe: {error};"
            f" tui-probe new-probe NAME --at {lines} writes one here"
        ) from error
