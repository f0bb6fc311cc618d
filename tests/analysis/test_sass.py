"""Instructions of a disassembly, their source lines and classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_probe.pages.code.sass_text import CLASSES, instruction_class, parse_sass

DATA = Path(__file__).parents[1] / "data" / "sass"

EXAMPLES = {
    "fp32": "FFMA MUFU.RCP FSETP.GT.AND",
    "fp64": "DFMA",
    "fp16": "HFMA2.MMA HADD2.F32",
    "integer": "IADD3 IMAD.WIDE.U32 UIADD3 LOP3.LUT ISETP.GE.AND",
    "tensor": "HMMA.16816.F32 IMMA.16832.S8.S8 HGMMA.64x64x16.F32",
    "load": "LDG.E.128 LDS ULDC.64 LDGSTS.E.BYPASS.128 LDSM.16.M88.4 LDC",
    "store": "STG.E STS.128",
    "local": "LDL STL.64",
    "atomic": "RED.E.ADD ATOMG.E.ADD",
    "branch": "BRA EXIT BSSY WARPSYNC",
    "barrier": "BAR.SYNC.DEFER_BLOCKING LDGDEPBAR DEPBAR.LE MEMBAR.SC.GPU",
    "special": "S2R CS2R.32 S2UR",
    "other": "MOV SHFL.BFLY I2F REDUX.SUM NOP",
}
OPCODES = {opcode: name for name, opcodes in EXAMPLES.items() for opcode in opcodes.split()}


@pytest.mark.parametrize("opcode", OPCODES)
def test_the_class_of_an_opcode(opcode: str) -> None:
    assert instruction_class(opcode) == OPCODES[opcode]
    assert OPCODES[opcode] in CLASSES


def test_a_disassembly() -> None:
    code = parse_sass((DATA / "zero_fill.pruned.txt").read_text())
    assert code.lines[0] == "zero_fill:"
    assert "BRA" in code.lines[-1]  # what follows only fills the last line of code
    assert len(code.lines) == len(code.sources)
    assert code.counts["store"] == 1
    assert code.total == sum(line.startswith(" ") for line in code.lines)
    assert any(source.startswith("zero_fill.cu:") for source in code.sources)


def test_other_text_has_no_instructions() -> None:
    assert parse_sass("").total == 0
    assert parse_sass("nvdisasm fatal: anything that\n\n\x00").lines == []
