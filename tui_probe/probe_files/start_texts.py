"""The texts of probes that are written for a person: that of ``new-probe``, and that of ``run --between``."""

from __future__ import annotations

from typing import Final

TITLE: Final = "How long each warp is between two places of a kernel"
PYTHON: Final = '''\
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
TOML: Final = '''\
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


def text_between(lines: str) -> str:
    """The text of a probe in Python for lines of source, ``FILE:FIRST-LAST``. Its map is called the same for any."""
    title = f"How long each warp is in {lines}, with what was inlined there"
    use = f"It was written for these lines. One to change: tui-probe new-probe NAME --at {lines}"
    return PYTHON.format(name="between", position=lines, title=title, use=use)
