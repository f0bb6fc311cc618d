"""Any file gives a Probe or a ProbeFileError; a Probe goes into a kernel."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dsl.running import PROGRAMS, probed_saxpy
from tests.turns import examples
from tui_probe.errors import ProbeFileError
from tui_probe.probe_files.loading import read_probe
from tui_probe.probe_files.new_probe import to_toml
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import compile_kernel

SOURCES = [path.read_text() for path in PROGRAMS]
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
WORDS = sorted({word for source in SOURCES for word in TOKEN.findall(source)} | {"lambda", "yield", "match", ":=", "é"})
STATEMENTS = [
    "x = addr",
    "x = lane() + 1",
    "y: u32 = x << bytes",
    "x += y",
    "total += x",
    "low = total",
    "if x > 3:",
    "elif y < total:",
    "else:",
    "for i in range(3):",
    "for j in range(4, 0, -2):",
    "x = i * j",
    "m.locate()",
    "m.add(x, low)",
    "x = line",
    "m.save(x, low)",
    "m.save(clock() - total, y if x else 1)",
    "pass",
    "global total",
    "return",
]
HEAD = """
total: u64 = 3
low: u32 = 7
@Map(level="thread")
class m:
    a: u64
    b: u32
@probe(pos="st.global", before=True)
def store():
    x = 0
    y = 1
    m.save(1, 2)
"""


def compiles(source: str) -> bool:
    """Compile a file. If it is a probe, its TOML is one too, and a kernel with it can be executed."""
    try:
        probe = read_probe(source.encode("utf-8", "surrogatepass"), Path("own.py"))
    except ProbeFileError:
        return False
    again = read_probe(to_toml(source, "own.py").encode(), Path("own.toml"))
    assert (again.maps, again.registers) == (probe.maps, probe.registers)
    compile_kernel(parse(probed_saxpy(probe)), "saxpy")
    return True


@settings(max_examples=examples(100), deadline=None)
@given(st.text())
def test_any_text(source: str) -> None:
    compiles(source)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_damaged_programs(data: st.DataObject) -> None:
    tokens = TOKEN.findall(data.draw(st.sampled_from(SOURCES)))
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(tokens) - 1))
        tokens[index : index + data.draw(st.integers(0, 2))] = data.draw(st.lists(st.sampled_from(WORDS), max_size=2))
    compiles("".join(tokens))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STATEMENTS), st.integers(0, 2)), max_size=9))
def test_random_statements(statements: list[tuple[str, int]]) -> None:
    """Statements below each other, each with what a block needs; how deep they be is random."""
    lines, depth = [], 1
    for statement, wanted in statements:
        deepest = depth + 1 if lines and lines[-1].endswith(":") else depth
        depth = deepest if deepest > depth else max(1, min(deepest, wanted + 1))
        lines.append("    " * depth + statement)
    if lines and lines[-1].endswith(":"):
        lines.append("    " * (depth + 1) + "pass")
    compiles(HEAD + "\n".join(lines) + "\n")


def test_the_statements_are_not_all_refused() -> None:
    assert compiles(HEAD)
    assert compiles(HEAD + "    for i in range(3):\n        x += y\n        if x > 3:\n            m.save(x, i)\n")


def test_a_long_chain_is_compiled_or_refused() -> None:
    assert compiles(HEAD + f"    total = {' + '.join(['x'] * 200)}\n")
    assert not compiles(HEAD + f"    total = {' + '.join(['x'] * 20000)}\n")
    locals_in_turn = "".join(f"    x{i + 1} = x{i} + y\n" for i in range(300))
    assert compiles(HEAD + "    x0 = addr\n" + locals_in_turn)
