# ruff: noqa: A004, N801
"""Loads and stores by line.

Measures: executions and bytes of each access
"""

from tui_probe.dsl import Map, bytes, instructions, probe, u64


@Map(level="site")
class accesses:
    executed: u64
    moved: u64


@Map(level="site")
class blocks:
    entered: u64
    held: u64


@probe(pos="ld.global:st.global", before=True)
def access():
    accesses.add(1, bytes)


@probe(pos="block", level="site", before=True)
def enter():
    blocks.add(1, instructions)
