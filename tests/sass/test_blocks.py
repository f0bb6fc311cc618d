"""Basic blocks and the kinds of instructions of machine code, compared with what nvdisasm says of the same code."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.bench.grafts import of_corpus
from tests.bench.sass_operations import unlike
from tests.turns import due
from tui_probe.engine.assembler import Assembler
from tui_probe.engine.trial.count_trials import block_cubin
from tui_probe.errors import UnsupportedKernelError
from tui_probe.sass.flow import basic_blocks
from tui_probe.sass.operations import operation_class, operation_name
from tui_probe.sass.target import GraftTarget
from tui_probe.sass.words import WORD_BYTES
from tui_probe.toolchain import find_disassembler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tui_probe.binaries.cubin import Cubin

ARCHITECTURES = (80, 90, 100, 120)
CHOSEN = {"control.sm_80.ptx", "warps.sm_80.ptx", "tensor.sm_80.ptx", "bounds.sm_80.ptx", "triton_matmul.sm_80.ptx"}
_WAYS = [f"$way{index}" for index in range(12)]
_CODE = "".join(
    f"{name}: ld.volatile.global.u32 %r2, [%d+{4 * index}]; st.volatile.global.u32 [%d+{80 * index}], %r2; bra $end;\n"
    for index, name in enumerate(_WAYS)
)
TABLE = f"""
.visible .entry table(.param .u64 x)
{{
	.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d;
	ld.param.u64 %d, [x]; mov.u32 %r1, %tid.x;
	setp.gt.u32 %p, %r1, {len(_WAYS) - 1}; @%p bra $end;
	ways: .branchtargets {", ".join(_WAYS)};
	brx.idx %r1, ways;
{_CODE}
$end:	ret;
}}
"""
_LABEL = re.compile(r"^\.L_x_\d+:$")
_TEXT = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")


def led_to(image: bytes, folder: Path) -> set[int]:
    """Return the offsets of the labels of jumps in the only kernel of a cubin."""
    tool = find_disassembler()
    if tool is None:
        pytest.skip("no nvdisasm on this machine: install nvidia-cuda-nvdisasm")
    path = folder / "labels.cubin"
    path.write_bytes(image)
    done = subprocess.run([tool.path, "-c", path], capture_output=True, text=True, check=True)
    classes, waits = set(), False
    for line in done.stdout.splitlines():
        waits = waits or bool(_LABEL.match(line))
        if waits and (match := _TEXT.match(line)):
            classes.add(int(match[1], 16))
            waits = False
    return classes


@pytest.mark.parametrize("arch", due(ARCHITECTURES))
def test_operations_have_the_names_that_nvdisasm_gives_them(arch: int) -> None:
    cubins = list(of_corpus(arch, CHOSEN))
    assert len(cubins) == len(CHOSEN)
    assert unlike(cubins, arch) == []


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_block_begins_at_each_label_and_behind_each_jump(arch: int, tmp_path: Path) -> None:
    cubin = block_cubin(arch, Assembler())
    target = GraftTarget.from_cubin(cubin, "trial")
    blocks = basic_blocks(target)
    begins = {block.start * WORD_BYTES for block in blocks}
    labels = led_to(cubin.image, tmp_path)
    assert len(labels) > 10
    # Labels that only tables of the file report are at EXIT and at instructions of warps.
    starts = {
        at
        for at in labels - begins
        if operation_name(target.words[at // WORD_BYTES], arch) in ("EXIT", "VOTEU", "REDUX")
    }
    assert labels <= begins | starts
    assert [at for block in blocks for at in block] == list(range(len(target.words)))
    for block in blocks:
        assert not {operation_name(target.words[at], arch) for at in block[:-1]} & {
            "BRA",
            "EXIT",
            "CALL",
            "RET",
            "BSYNC",
        }


def test_branches_through_registers_lead_where_the_file_says(assembled: Callable[[str, int], Cubin]) -> None:
    cubin = assembled(TABLE, 90)
    target = GraftTarget.from_cubin(cubin, "table")
    names = [operation_name(word, 90) for word in target.words]
    assert "BRX" in names
    loads = [at for at, name in enumerate(names) if name == "LDG"]
    blocks = [block for block in basic_blocks(target) if set(loads) & set(block)]
    assert len(blocks) == len(loads) == len(_WAYS)
    untold = GraftTarget(
        target.cubin, target.symbol, target.code, target.info, target.constants, target.functions, target.words,
        tuple(attribute for attribute in target.attributes if attribute.number != 0x34), target.base,
        target.parameter_bytes, target.registers,
    )  # fmt: skip
    with pytest.raises(UnsupportedKernelError) as caught:
        basic_blocks(untold)
    assert caught.value.reason.code == "graft-branch"


def test_classes_are_those_of_ptx(assembled: Callable[[str, int], Cubin]) -> None:
    text = """.visible .entry k(.param .u64 x) { .reg .b64 %d; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .f64 %g<3>;
    ld.param.u64 %d, [x]; ld.global.v2.b32 {%r1, %r2}, [%d];
    fma.rn.bf16x2 %r3, %r1, %r2, %r1; fma.rn.f16x2 %r4, %r1, %r2, %r3;
    ld.global.v2.f32 {%f1, %f2}, [%d+8]; fma.rn.f32 %f3, %f1, %f2, %f1; cvt.f64.f32 %g1, %f3; mul.f64 %g2, %g1, %g1;
    atom.global.add.u32 %r5, [%d+40], %r4; bar.sync 0; st.global.f64 [%d+16], %g2; st.global.b32 [%d+24], %r5; ret; }"""
    target = GraftTarget.from_cubin(assembled(text, 90), "k")
    classes = {operation_name(word, 90): operation_class(word, 90) for word in target.words}
    expected = {
        "LDG": "load", "FFMA": "fp32", "DMUL": "fp64", "F2F": "other", "ATOMG": "atomic", "BAR": "barrier",
        "STG": "store", "EXIT": "branch", "NOP": "other",
    }  # fmt: skip
    assert expected.items() <= classes.items()
    halves = {operation_class(word, 90) for word in target.words if operation_name(word, 90) == "HFMA2"}
    assert halves == {"fp16", "bf16"}
