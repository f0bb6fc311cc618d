"""The place of probe text, and that nothing else changes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.engine.kernels import (
    DATA,
    STORE,
    counting_probe,
    entry,
    inserted,
    probed,
    toml_probe,
    without_insertions,
    words,
)
from tests.golden import golden
from tui_probe.engine.insertion import probed_kernel
from tui_probe.engine.kernel import Kernel, count_inserted_instructions
from tui_probe.engine.refusals import is_for_instructions, no_match_reason
from tui_probe.errors import UnsupportedKernelError
from tui_probe.probe_files.loading import load_probe
from tui_probe.probekit.registry import all_probes
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"

END = toml_probe(
    """
[map.end]
level = "thread"
regs = { clock = "u64" }
[probe.p]
position = "kernel"
after = "SAVE [ end ] {%clock64};"
""",
    "end",
)


def stores(text: str) -> int:
    """The number of stores of a record."""
    return sum("st.global.b64" in line for line in inserted(text))


@pytest.mark.parametrize(
    ("file", "kernel"),
    [
        ("", "store"),
        ("control.sm_80.ptx", "leave_early"),
        ("control.sm_80.ptx", "empty"),
        ("triton_add.sm_90a.ptx", "add"),
        ("variables.sm_80.ptx", "uses_constants"),
    ],
)
def test_the_text(file: str, kernel: str) -> None:
    text = (DATA / file).read_text() if file else HEADER + STORE
    golden(f"block_sched.{kernel}.ptx", probed(text, kernel))


def test_kernel_position_is_before_the_first_instruction_and_before_a_label() -> None:
    text = probed(entry("\t.reg .b32 %r<2>;\n$loop:\n\tmov.u32 %r1, 0;\n\tbra $loop;"))
    assert text.index("mov.u32 %tp_begin, %clock;") < text.index("$loop:")
    assert text.index(".reg .b32 %r<2>;") < text.index("%tp_begin")


@pytest.mark.parametrize(
    ("body", "exits"),
    [
        ("ret;", 1),
        ("exit;", 1),
        ("", 1),
        (".reg .b32 %r1;\nmov.u32 %r1, 1;", 1),
        (".reg .pred %p1;\nsetp.eq.u32 %p1, 1, 2;\n@%p1 ret;", 2),
        (".reg .pred %p1;\nsetp.eq.u32 %p1, 1, 2;\n@!%p1 exit;\nret;", 2),
        (".reg .pred %p1;\nsetp.eq.u32 %p1, 1, 2;\n@%p1 bra $end;\nret;\n$end:", 2),
        ("bra $end;\n$end: ret;\n$unused:", 1),
        ("$loop: bra $loop;", 0),
        ("{ .reg .b32 %r1; mov.u32 %r1, 1; ret; }", 1),
        ("{ .reg .b32 %r1; { ret; } }", 1),
        ("trap;", 0),
        ("ret.uni;", 1),
    ],
)
def test_every_way_out_is_probed(body: str, exits: int, accepts: Callable[[str], int]) -> None:
    text = probed(entry(body), probe=END)
    assert stores(text) == exits
    accepts(text)


@pytest.mark.parametrize(("guard", "skip"), [("@%p1", "@!%p1"), ("@!%p1", "@%p1")])
def test_a_predicated_exit_runs_the_probe_in_the_lanes_that_leave(guard: str, skip: str) -> None:
    text = probed(entry(f".reg .pred %p1;\nsetp.eq.u32 %p1, 1, 2;\n{guard} ret;\nret;"), probe=END)
    lines = inserted(text)
    (branch,) = (line for line in lines if line.startswith(f"{skip} bra $"))
    label = branch.split()[-1].rstrip(";")
    start, end = lines.index(branch), lines.index(f"{label}:")
    assert sum("st.global.b64" in line for line in lines[start:end]) == 1
    assert text.index(f"{label}:") < text.index(f"{guard} ret;")


def test_predicated_instructions_are_probed_under_their_predicate() -> None:
    body = ".reg .pred %p1;\n.reg .b64 %rd1;\n.reg .b32 %r1;\n@!%p1 ld.global.u32 %r1, [%rd1];\nret;"
    add = "add.u64 %n, %n, 1;"
    assert "@!%p1 add.u64 %tp_n, %tp_n, 1;" in inserted(probed(entry(body), probe=counting_probe("ld.global", add)))
    unguarded = counting_probe("ld.global", add, more="no_pred = true")
    assert "add.u64 %tp_n, %tp_n, 1;" in inserted(probed(entry(body), probe=unguarded))
    branching = counting_probe("ld.global", f".reg .pred %q; setp.gt.u64 %q, %n, 9; @%q {add}")
    lines = inserted(probed(entry(body), probe=branching))
    assert any(line.startswith("@%p1 bra $tp_") for line in lines)


def test_a_predicate_that_the_instruction_overwrites_is_kept() -> None:
    body = ".reg .pred %p<3>;\n.reg .b32 %r1;\n@%p1 setp.eq.u32 %p1|%p2, %r1, 0;\nret;"
    text = probed(entry(body), probe=counting_probe("setp", after="add.u64 %n, %n, 1;"))
    lines = inserted(text)
    assert lines.index("mov.pred %tp__kept_predicate, %p1;") < lines.index(
        "@%tp__kept_predicate add.u64 %tp_n, %tp_n, 1;"
    )


def test_snippets_around_one_instruction_come_in_the_order_of_the_file() -> None:
    probe = toml_probe(
        """
[map.n]
level = "thread"
regs = { n = "u32" }
[probe.frame]
position = "kernel"
before = ".reg .b32 %n; mov.u32 %n, 0;"
after = "SAVE [ n ] {%n};"
[probe.first]
position = "st.global"
before = "add.u32 %n, %n, 1;"
after = "add.u32 %n, %n, 3;"
[probe.second]
position = "st"
before = "add.u32 %n, %n, 2;"
after = "add.u32 %n, %n, 4;"
"""
    )
    text = probed(HEADER + STORE, "store", probe)
    order = [text.index(part) for part in ("%tp_n, 1;", "%tp_n, 2;", "st.global.u32", "%tp_n, 3;", "%tp_n, 4;")]
    assert order == sorted(order)


def test_names_do_not_clash(accepts: Callable[[str], int]) -> None:
    body = ".reg .b32 %tp_begin, %tp0__unit;\nmov.u32 %tp_begin, 1;\nbra $tp1_0;\n$tp1_0:\nret;"
    text = probed(entry(body))
    assert "mov.u32 %tp2_begin, %clock;" in inserted(text)
    accepts(text)


@pytest.mark.parametrize(
    "header",
    ["kernel", "kernel()", "kernel (\n)", "kernel ( .param .u32 x )", "kernel(.param .align 8 .b8 x[12])"],
)
def test_parameters_are_appended(header: str, accepts: Callable[[str], int]) -> None:
    text = probed(f"{HEADER}.entry {header} .maxntid 32, 1, 1\n{{\n\tret;\n}}\n")
    own = [f".param .u64 {name}" for name in re.findall(r"\.param \.u64 (\w+)", text)]
    assert own == [".param .u64 tp_map_block_sched"]
    assert parse(text).entries()[0].parameters[-1].name == "tp_map_block_sched"
    accepts(text)


def test_several_statements_on_one_line(accepts: Callable[[str], int]) -> None:
    text = probed(f"{HEADER}.entry kernel() {{ .reg .pred %p; setp.eq.u32 %p, 1, 2; $a: @%p ret; ret; }}\n")
    assert stores(text) == 2
    accepts(text)


def test_comments_stay_with_their_instructions() -> None:
    body = "\t.reg .b32 %r1;\n\tmov.u32 %r1, 1; // one\n\tret; // leave\n"
    text = probed(entry(body), probe=counting_probe("mov", after="add.u64 %n, %n, 1;"))
    assert "mov.u32 %r1, 1; // one\n\tadd.u64" in text
    assert "\tret; // leave\n" in text


def test_nothing_else_changes() -> None:
    kernel = Kernel.of(parse(HEADER + STORE), "store")
    text = probed(HEADER + STORE, "store")
    assert words(without_insertions(text)) == words(kernel.pruned)


def test_required_block_sizes_are_constants() -> None:
    text = probed(f"{HEADER}.entry kernel() .reqntid 96 {{ ret; }}")
    assert "mov.u32 %tp__unit, 3;" in inserted(text)
    assert "%ntid" not in text
    assert "%ntid.y" in probed(f"{HEADER}.entry kernel() .reqntid 8, 4, 2 {{ ret; }}")


def test_thread_level_needs_no_lane_and_no_shift() -> None:
    text = probed(entry("ret;"), probe=END)
    assert "activemask" not in text
    assert "shr.u32" not in text
    assert "mad.wide.u32 %tp__address, %tp__slot, 16, %tp__wide;" in inserted(text)
    assert "st.global.v2.u32 [%tp__address+8], {1, %tp__zero};" in inserted(text)


READS = """
[map.reads]
level = "{level}"
type = "{type}"
cap = 5
regs = {{ address = "u64", bytes = "u32" }}
[probe.p]
position = "ld.global"
before = "{located}SAVE [ reads ] {{ADDR, BYTES}};"
"""
ONE_READ = entry(
    """
.reg .b32 %r1;
.reg .b64 %rd1;
ld.param.u64 %rd1, [x];
ld.global.u32 %r1, [%rd1+4];
st.global.u32 [%rd1], %r1;
ret;""",
    ".param .u64 x",
)


def test_records_of_a_warp_are_bounded_and_counted(accepts: Callable[[str], int]) -> None:
    """Lane 0 counts in a register, strays in memory; no one stores where the slot is full."""
    text = probed(ONE_READ, probe=toml_probe(READS.format(level="warp", type="array", located="")))
    lines = inserted(text)
    assert "@%tp__stray atom.global.add.u32 %tp__index, [%tp__address+4], 1;" in lines
    assert "setp.ge.u32 %tp__full, %tp__index, 5;" in lines
    assert "mad.wide.u32 %tp__address, %tp__place_reads, 176, %tp__wide;" in lines
    assert lines.index("@%tp__full bra $tp_0;") < lines.index("st.global.cs.b64 [%tp__address+16], %tp__addr;")
    assert lines[-1] == "@%tp__first st.global.u32 [%tp__address], %tp__index;"
    accepts(text)


@pytest.mark.parametrize("located", ["", "LOCATE [ reads ]; "])
def test_records_of_a_thread_are_rows_of_its_warp(located: str, accepts: Callable[[str], int]) -> None:
    text = probed(ONE_READ, probe=toml_probe(READS.format(level="thread", type="array", located=located)))
    lines = inserted(text)
    assert "mad.lo.u32 %tp__place_reads, %tp__warp, 192, %tp__lane;" in lines  # 32 × (a count + 5 records)
    assert "mad.lo.u32 %tp__index, %tp__attempts_reads, 32, %tp__place_reads;" in lines
    guard = "" if located else "@%tp__room "
    assert f"{guard}st.global.cs.b64 [%tp__address+512], %tp__addr;" in lines
    assert f"{guard}st.global.cs.b32 [%tp__address+520], 4;" in lines
    assert ("@!%tp__room bra $tp_0;" in lines) == bool(located)
    assert "atom" not in text
    accepts(text)


@pytest.mark.parametrize("level", ["thread", "warp"])
def test_the_capacity_of_a_dynamic_map_is_a_parameter(level: str, accepts: Callable[[str], int]) -> None:
    text = probed(ONE_READ, probe=toml_probe(READS.format(level=level, type="dynamic", located="")))
    assert re.search(r"\.param \.u64 tp_map_reads,\s*\.param \.u64 tp_cap_reads", text)
    assert "ld.param.u32 %tp__cap, [tp_cap_reads];" in inserted(text)
    accepts(text)


def test_a_record_is_stored_in_as_few_pieces_as_its_alignment_allows(accepts: Callable[[str], int]) -> None:
    def pieces(fields: str, values: str, size: int) -> list[str]:
        probe = toml_probe(
            f"""
[map.m]
level = "thread"
cap = 2
size = {size}
regs = {{ {fields} }}
[probe.p]
position = "kernel"
before = "SAVE [ m ] {{{values}}};"
"""
        )
        text = probed(entry("ret;"), probe=probe)
        accepts(text)
        matches = (
            re.fullmatch(r"@%tp__room st.global.cs.(\S+) \[%tp__address\+(\d+)\], .*", line) for line in inserted(text)
        )
        return [f"{match[1]}+{match[2]}" for match in matches if match]

    assert pieces('a = "u64", b = "u32", c = "u32"', "%clock64, 1, 2", 16) == ["v2.b64+512"]
    assert pieces('a = "u64", b = "u64"', "%clock64, 1", 16) == ["v2.b64+512"]
    assert pieces('a = "u32", b = "u32", c = "u32", d = "u32"', "1, 2, 3, 4", 16) == ["v4.b32+512"]
    assert pieces('a = "u32", b = "u32"', "%clock, 1", 8) == ["v2.b32+256"]
    assert pieces('a = "u64", b = "u64", c = "u32"', "1, 2, 3", 24) == ["b64+256", "b64+512", "b32+768"]
    assert pieces('a = "u32", b = "u32", c = "u32"', "1, 2, 3", 12) == ["b32+128", "b32+256", "b32+384"]
    assert pieces('a = "u64", b = "u32"', "1, 2", 16) == ["b64+512", "b32+520"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (".version 6.1\n.target sm_60\n.address_size 64\n.entry kernel(){ ret; }", "activemask"),
        (".version 8.0\n.target sm_80\n.address_size 32\n.entry kernel(){ ret; }", "32-bit addresses"),
    ],
)
def test_kernels_that_cannot_be_probed(text: str, reason: str) -> None:
    with pytest.raises(UnsupportedKernelError, match=reason):
        probed(text)


def test_returns_of_called_functions_are_no_exits() -> None:
    text = probed(f"{HEADER}.func f() .noinline {{ ret; }}\n.entry kernel() {{ call f; ret; }}", probe=END)
    assert stores(text) == 1
    assert ".func f() .noinline { ret; }" in text


def test_unknown_instructions_pass_through() -> None:
    text = probed(entry("frobnicate.sync.v9 {%q1, %q2}, [%z + 3, {%r1}], 0b101;\nret;"), probe=END)
    assert "frobnicate.sync.v9 {%q1, %q2}, [%z + 3, {%r1}], 0b101;" in text


def test_added_instructions_are_counted() -> None:
    text = """
	.reg .b32 %r<3>;
	.reg .b32 %tp_a, %tp_b; // tui-probe: own
	mov.u32 %r1, 1;
	mov.u32 %tp_a, %clock; // tui-probe: own
	@%p bra $tp_0; // tui-probe: own
	ld.global.u32 %r1, [%tp_v]; // tui-probe: instead of: ld.global.u32 %r1, [v];
$tp_0: // tui-probe: own
	// SAVE // tui-probe: own
	ret;
"""
    assert count_inserted_instructions(text) == 2


@pytest.mark.parametrize(
    ("position", "missing"),
    [
        ("ld.global", ""), ("mma", "matrix instruction"), ("mma:ld", ""), ("kernel", ""), ("loop", ""),
        ("block.fp64", "fp64 instruction"),
        ("st.!global.!shared.!bulk:st.shared.!async", "global store or shared memory store"),
        ("fma.f32", "fma.f32"),
    ],
)  # fmt: skip
def test_a_probe_for_instructions_that_the_kernel_does_not_have(position: str, missing: str) -> None:
    """A kernel's entry is always there; that it has no loop is nothing to remark on."""
    text = "ld.global.u32 %r1, [%rd1];\nret;"
    kernel = Kernel.of(parse(entry(f".reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n{text}")), "kernel")
    probe = toml_probe(
        f'[map.m]\nlevel = "warp"\nregs = {{ n = "u64" }}\n[probe.p]\nposition = "{position}"\n'
        'before = "SAVE [ m ] {%clock64};"\n'
    )
    info = probed_kernel(kernel, probe)[1]
    notes = [line for line in info.splitlines() if line.startswith("note ")]
    expected = f"note own matched no instruction of this kernel, which has no {missing} code matched-nothing"
    assert notes == ([expected] if missing else [])


def test_reason_of_no_match_has_words_for_every_probe() -> None:
    """A user of a probe need not know the patterns of its file."""
    probes = [load_probe(built_in.name) for built_in in all_probes()]
    texts = [no_match_reason(probe).text for probe in probes if is_for_instructions(probe)]
    assert [text for text in texts if "!" in text] == []
