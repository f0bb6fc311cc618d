"""Heads of loops, and LINE: the line of pruned.ptx at which a probe's record was made."""

from __future__ import annotations

import pytest

from tests.engine.kernels import CORPUS, HEADER, entry, inserted, probed, toml_probe
from tui_probe.engine.kernel import Kernel, function_instructions
from tui_probe.errors import ProbeFileError
from tui_probe.probe_model.positions import parse_positions
from tui_probe.ptx.control_flow import basic_blocks, loop_heads
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Immediate

PACE = """
[map.pace]
level = "warp"
cap = 4
[map.pace.regs]
clock = "u32"
line = "u32"
[probe.pace]
position = "{position}"
before = "SAVE [ pace ] {{%clock, {value}}};"
"""


def heads(body: str) -> list[str]:
    """The first operands of the instructions that begin loops, which name them."""
    loops = loop_heads(parse(entry(body)).entries()[0])
    return [
        str(instruction.operands[-1].text) for instruction in loops if isinstance(instruction.operands[-1], Immediate)
    ]


NESTED = """
mov.u32 %r0, 0;
$outer: mov.u32 %r1, 1;
$inner: mov.u32 %r2, 2;
@%p1 bra $inner;
@%p2 bra $outer;
ret;
"""
MOVED_UP = """
bra $work;
$early: mov.u32 %r1, 1;
bra $end;
$work: mov.u32 %r2, 2;
@%p1 bra $early;
$end: mov.u32 %r3, 3;
ret;
"""
MOVED_UP_IN_A_LOOP = """
$loop: mov.u32 %r0, 0;
bra $work;
$early: mov.u32 %r1, 1;
bra $end;
$work: mov.u32 %r2, 2;
@%p1 bra $early;
$end: mov.u32 %r3, 3;
@%p2 bra $loop;
ret;
"""
TABLE = """
$table: .branchtargets $first, $second;
$first: mov.u32 %r1, 1;
mov.u32 %r9, 9;
$second: mov.u32 %r2, 2;
@%p1 brx.idx %r1, $table;
ret;
"""
ITSELF = "$only: $same: mov.u32 %r1, 7;\n@!%p1 bra.uni $only;\n$last:"


@pytest.mark.parametrize(
    ("body", "expected"),
    [(NESTED, ["1", "2"]), (MOVED_UP, []), (MOVED_UP_IN_A_LOOP, ["0"]), (TABLE, ["1", "2"]), (ITSELF, ["7"])],
)
def test_heads_of_loops(body: str, expected: list[str]) -> None:
    assert heads(body) == expected


def test_blocks_hold_every_instruction_once() -> None:
    for path in CORPUS:
        for function in parse(path.read_text()).entries():
            blocks = basic_blocks(function)
            assert [id(instruction) for block in blocks for instruction in block] == [
                id(instruction) for instruction in function_instructions(function)
            ]
            first = {id(block[0]) for block in blocks}
            assert all(id(head) in first for head in loop_heads(function))


def test_line_is_that_of_the_pruned_text() -> None:
    for path in CORPUS:
        module = parse(path.read_text())
        for function in module.entries():
            kernel = Kernel.of(module, function.name)
            lines = kernel.pruned.splitlines()
            for instruction in function_instructions(kernel.entry):
                assert kernel.text(instruction.span).splitlines()[0] in lines[kernel.line_of(instruction) - 1]


def test_line_of_a_loop_and_of_an_instruction() -> None:
    module = ".global .u32 other;\n.entry unused() { ret; }\n"
    body = ".reg .b32 %r<9>;\n.reg .pred %p<3>;\n$outer:\n\tmov.u32 %r1,\n\t\t1;\n@%p1 bra $outer;\nret;"
    text = entry(body, module=module)
    line = Kernel.of(parse(text), "kernel").pruned.splitlines().index("\tmov.u32 %r1,") + 1
    assert line != text.splitlines().index("\tmov.u32 %r1,") + 1
    for position in ("loop", "mov", "block"):
        saved = inserted(probed(text, probe=toml_probe(PACE.format(position=position, value="LINE"))))
        assert any(f", {line}}};" in text for text in saved)


def test_meaningless_positions() -> None:
    with pytest.raises(ValueError, match=r"'loop\.fp32' is not a position; write 'loop' or 'loop\.unbounded'"):
        parse_positions("loop.fp32")
    for position, value in (("kernel", "LINE"), ("loop", "INSTRUCTIONS"), ("loop", "ADDR")):
        with pytest.raises(ProbeFileError, match=value):
            toml_probe(PACE.format(position=position, value=value))


def test_a_loop_is_no_block_of_a_called_function() -> None:
    """Loops of called functions are left unchanged; those of the kernel are probed."""
    text = (
        f"{HEADER}.func spin() {{ .reg .pred %p<2>;\n$again: @%p1 bra $again; ret; }}\n"
        ".entry kernel() {\n.reg .b32 %r<2>;\n.reg .pred %p<2>;\n$loop: call spin;\n@%p1 bra $loop;\nret;\n}\n"
    )
    assert inserted(probed(text, probe=toml_probe(PACE.format(position="loop", value="LINE"))))
