# ruff: noqa: N801
"""Instructions that the threads executed, by their lines in pruned.ptx."""

from tui_probe.dsl import Map, line, probe, u32


@Map(level="thread", cap=4)
class places:
    at: u32
    before: u32


@probe(pos="ld.global:st.global", level="thread", before=True)
def access() -> None:
    places.save(line, line - 1)
