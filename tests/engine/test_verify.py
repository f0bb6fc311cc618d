"""A probe that does what it may not is refused, with the file, the line and what to write instead."""

from __future__ import annotations

import pytest

from tests.engine.kernels import toml_probe
from tui_probe.errors import ProbeFileError

FRAME = '''# a comment on line 1
[map.m]
level = "thread"
[map.m.regs]
x = "u64"
y = "u32"

[probe.p]
position = "{position}"
before = """
.reg .b64 %a;
.reg .b32 %b;
.reg .pred %yes;
{snippet}
SAVE [ m ] {{%a, %b}};
"""
'''
SNIPPET_LINE = 14


def frame(snippet: str, position: str = "ld.global") -> str:
    return FRAME.format(position=position, snippet=snippet)


@pytest.mark.parametrize(
    "snippet",
    [
        "mov.u64 %a, ADDR;",
        "add.u64 %a, %a, IN1; // a comment",
        "setp.eq.u32 %yes, %b, 3; @!%yes bra out; mov.u32 %b, %smid; out:",
        "{ mov.u32 %b, %tid.x; }".strip("{} "),
        "activemask.b32 %b; popc.b32 %b, %b;",
        "activemask.b32 %b; vote.sync.ballot.b32 %b, %yes, %b;",
        "LOCATE [ m ]; mov.u64 %a, %clock64;",
        "mov.b64 {%b, _}, %a;",
    ],
)
def test_sound_snippets(snippet: str) -> None:
    assert toml_probe(frame(snippet)).registers == {"%a": "b64", "%b": "b32", "%yes": "pred"}


@pytest.mark.parametrize(
    ("snippet", "words"),
    [
        ("st.global.u64 [ADDR], %a;", ["writes memory", "SAVE"]),
        ("atom.global.add.u32 %b, [%a], 1;", ["writes memory"]),
        ("red.global.add.u32 [%a], 1;", ["writes memory"]),
        ("cp.async.ca.shared.global [%b], [%a], 16;", ["writes memory"]),
        ("ld.param.u64 %a, [kernel_param_0];", ["reads the kernel's memory or parameters"]),
        ("ld.shared.u32 %b, [tile];", ["reads the kernel's memory"]),
        ("SAVE [ m ] {_, 1};", ["only in resident maps"]),
        ("ret;", ["leaves the probe"]),
        ("@%yes exit;", ["leaves the probe"]),
        ("trap;", ["leaves the probe"]),
        ("call.uni helper;", ["leaves the probe"]),
        ("bar.sync 0;", ["wait"]),
        ("bra elsewhere;", ["branches out", "branch to a label of the snippet"]),
        ("bra %a;", ["branches out"]),
        ("mov.u64 %rd1, %a;", ["writes %rd1", "does not declare"]),
        ("mov.u64 OUT, %a;", ["the first operand must be a register of the probe"]),
        ("mov.u64 %clock64, %a;", ["writes %clock64"]),
        ("add.u64 %a, %a, %rd1;", ["uses %rd1", ".reg"]),
        ("@%p1 mov.u32 %b, 1;", ["uses %p1"]),
        ("mov.u64 %a, tile;", ["uses tile"]),
        ("mov.u32 %b, [%a];", ["address in memory"]),
        ("membar.gl;", ["wait"]),
        ("nanosleep.u32 20;", ["wait"]),
        ("nanosleep.u32 %b;", ["wait"]),
        ("stackrestore.u64 %a;", ["changes the kernel's stack"]),
        ("stacksave.u64 %a;", ["changes the kernel's stack"]),
        ("wgmma.fence.sync.aligned;", ["changes kernel state"]),
        ("prefetchu.L1 [%a];", ["changes kernel state"]),
        ("applypriority.global.L2::evict_normal [%a], 128;", ["changes kernel state"]),
        ("add.cc.u32 %b, %b, 1;", ["carry flag", "64-bit registers"]),
        ("sub.cc.u32 %b, %b, 1;", ["carry flag"]),
        ("mad.lo.cc.u32 %b, %b, %b, 1;", ["carry flag"]),
        ("addc.u32 %b, %b, 1;", ["carry flag"]),
        ("subc.u32 %b, %b, 1;", ["carry flag"]),
        ("madc.hi.u32 %b, %b, %b, 1;", ["carry flag"]),
        ("vote.sync.ballot.b32 %b, %yes, 0xffffffff;", ["took another branch", "activemask"]),
        ("shfl.sync.idx.b32 %b, %b, 0, 31, -1;", ["activemask"]),
        ("match.any.sync.b32 %b, %b, -1;", ["activemask"]),
        ("redux.sync.add.s32 %b, %b, 15;", ["activemask"]),
        ("elect.sync %b|%yes, -1;", ["activemask"]),
        ("movmatrix.sync.aligned.m8n8.trans.b16 %b, %b;", ["all lanes of the warp"]),
        ("tld4.r.2d.v4.u32.f32 {%b, %b, %b, %b}, [%a, {%b, %b}];", ["reads the kernel's memory"]),
        ("txq.width.b32 %b, [%a];", ["reads the kernel's memory"]),
        ("suq.width.b32 %b, [%a];", ["reads the kernel's memory"]),
        ("SAVE [ m ] {%a};", ["values given: 1", "x, y"]),
        ("SAVE [ other ] {%a, %b};", ["no map other", "maps of this probe: m"]),
        ("SAVE [ m ] {%a, %yes};", ["predicate", "selp"]),
        ("SAVE [ m ] {%a, %none};", ["%none", "declare"]),
        ("SAVE [ m ] {%a, };", ["empty value"]),
        ("SAVE {%a, %b};", ["name of its map"]),
        ("@%yes SAVE [ m ] {%a, %b};", ["for a condition, use a branch"]),
        ("LOCATE m;", ["LOCATE [ map ];"]),
        ("LOCATE [ m ]; LOCATE [ m ];", ["the LOCATE before this LOCATE has no SAVE"]),
        ("LOCATE [ m ]; here:", ["label may not be between LOCATE and SAVE"]),
        (".shared .b32 tile;", ["a snippet may contain instructions"]),
        (".reg .v2 .b32 %v;", ["plain register"]),
        (".reg .b64 %b;", ["%b is declared twice"]),
        ("mov.u32 %b, 1", ["missing semicolon"]),
    ],
)
def test_refused_snippets(snippet: str, words: list[str]) -> None:
    with pytest.raises(ProbeFileError) as caught:
        toml_probe(frame(snippet), "bad")
    message = str(caught.value)
    assert message.startswith(f"bad.toml, line {SNIPPET_LINE}: ")
    for word in words:
        assert word in message


def test_helpers_belong_to_instructions() -> None:
    with pytest.raises(
        ProbeFileError, match="line 14: ADDR is a property of an instruction; it is not available at position 'kernel'"
    ):
        toml_probe(frame("mov.u64 %a, ADDR;", position="kernel"))


def test_special_registers_are_not_own_ones() -> None:
    with pytest.raises(ProbeFileError, match="%clock64 is a special register"):
        toml_probe(frame(".reg .b64 %clock64;"))
    with pytest.raises(ProbeFileError, match="ADDR is reserved: it stands for an operand"):
        toml_probe(frame(".reg .b64 ADDR;"))


def test_names_and_types_are_those_of_ptx() -> None:
    with pytest.raises(ProbeFileError, match=r"%v is declared as \.word; declare a type such as \.b32"):
        toml_probe(frame(".reg .word %v;"))
    with pytest.raises(ProbeFileError, match="the map name 'm-1' may contain only letters"):
        toml_probe('[map."m-1"]\nlevel = "warp"\nregs = { x = "u64" }\n' + frame(""))


def test_a_map_must_be_saved_to() -> None:
    text = frame("") + '[map.unused]\nlevel = "warp"\nregs = { z = "u32" }\n'
    with pytest.raises(ProbeFileError, match="nothing is saved in map unused"):
        toml_probe(text)


def test_a_probe_must_have_an_effect() -> None:
    with pytest.raises(ProbeFileError, match="records nothing"):
        toml_probe('[p]\nposition = "kernel"\nbefore = ".reg .b32 %a; mov.u32 %a, 1;"')


def test_a_locate_needs_its_save() -> None:
    with pytest.raises(ProbeFileError, match=r"line 16: LOCATE \[ m \] has no SAVE"):
        toml_probe(frame("").replace('};\n"""', '};\nLOCATE [ m ];\n"""'))


def test_a_save_must_name_the_located_map() -> None:
    other = '[map.other]\nlevel = "thread"\nregs = { z = "u32" }\n'
    with pytest.raises(ProbeFileError, match="name the same map"):
        toml_probe(other + frame("LOCATE [ other ];"))


# Each promise of what is refused, with what is written for it: after the colon is what to write instead.
CLAUSES = {
    "writes a register of the kernel": (
        "mov.b64 %rd1, %a;",
        "'mov.b64 %rd1, %a;' writes %rd1, which this probe does not declare; add '.reg'",
    ),
    "writes an operand of the instruction": (
        "mov.b64 OUT, %a;",
        "'mov.b64 OUT, %a;': the first operand must be a register of the probe; declare one with '.reg'",
    ),
    "writes memory": ("st.global.u64 [ADDR], %a;", "'st.global.u64 [ADDR], %a;' writes memory; use SAVE"),
    "saves in no map": ("SAVE [ n ] {%a, %b};", "there is no map n (maps of this probe: m)"),
    "branches out": ("bra done;", "'bra done;' branches out of the snippet; branch to a label of the snippet"),
    "leaves": ("@%yes exit;", "'@%yes exit;' leaves the probe; branch to a label of the snippet"),
    "calls": ("call helper;", "'call helper;' leaves the probe; branch to a label of the snippet"),
    "waits": ("bar.sync 0;", "'bar.sync 0;' makes the kernel wait; remove this instruction from the snippet"),
    "writes shared memory": ("st.shared.u32 [tile], %b;", "'st.shared.u32 [tile], %b;' writes memory; use SAVE"),
    "reads shared memory": (
        "ld.shared.u32 %b, [tile];",
        "'ld.shared.u32 %b, [tile];' reads the kernel's memory or parameters, which a probe cannot do; use ADDR, OUT,"
        " IN1, IN2 or IN3 instead",
    ),
    "reads parameters": (
        "ld.param.u64 %a, [x];",
        "'ld.param.u64 %a, [x];' reads the kernel's memory or parameters, which a probe cannot do; use ADDR, OUT,"
        " IN1, IN2 or IN3 instead",
    ),
    "takes the address of a variable": (
        "mov.u64 %a, tile;",
        "'mov.u64 %a, tile;' uses tile, which this probe does not declare; add '.reg'",
    ),
    "declares shared memory": (
        ".shared .b32 own;",
        "a snippet may contain instructions, labels, .reg, LOCATE, SAVE and ADD, not '.shared .b32 own;'",
    ),
    "uses an undeclared register": (
        "add.u64 %a, %a, %c;",
        "'add.u64 %a, %a, %c;' uses %c, which this probe does not declare; add '.reg'",
    ),
    "is guarded by an undeclared register": (
        "@%p mov.u32 %b, 1;",
        "'@%p mov.u32 %b, 1;' uses %p, which this probe does not declare; add '.reg'",
    ),
    "saves an undeclared register": (
        "SAVE [ m ] {%c, %b};",
        "%c is not a register of this probe; declare it, or save a number or helper",
    ),
    "saves too few": ("SAVE [ m ] {%a};", "SAVE takes a value for each field of map m (x, y); values given: 1"),
    "saves too many": ("SAVE [ m ] {%a, %b, 1};", "SAVE takes a value for each field of map m (x, y); values given: 3"),
    "saves a predicate": (
        "SAVE [ m ] {%a, %yes};",
        "%yes is a predicate; use 'selp.u32' to turn it into a number first",
    ),
    "saves a number that is too large": (
        "SAVE [ m ] {%a, 4294967296};",
        "4294967296 is more than the 32 bits of field y; make the field a u64",
    ),
    "saves half of a double": (
        ".reg .f64 %d; SAVE [ m ] {%a, %d};",
        "%d is .f64, which field y cannot hold; make the field a u64",
    ),
    "saves three numbers as one": ("SAVE [ m ] {%a, %tid};", "%tid is three numbers; write %tid.x, %tid.y or %tid.z"),
    "reads three numbers as one": (
        "mov.u32 %b, %ctaid;",
        "%ctaid is three numbers; write %ctaid.x, %ctaid.y or %ctaid.z",
    ),
    "reads a part of one number": ("mov.u32 %b, %clock.x;", "%clock is one number; write %clock, not %clock.x"),
}


@pytest.mark.parametrize("clause", CLAUSES)
def test_every_refusal_names_file_line_and_what_to_write(clause: str) -> None:
    snippet, reason = CLAUSES[clause]
    with pytest.raises(ProbeFileError) as caught:
        toml_probe(frame(snippet), "bad")
    assert str(caught.value) == f"bad.toml, line {SNIPPET_LINE}: {reason}"


@pytest.mark.parametrize("number", [0, -1, 4294967295, -2147483648])
def test_numbers_that_fit_can_be_saved(number: int) -> None:
    toml_probe(frame(f"SAVE [ m ] {{{number}, {number}}};"))


DEAD = '''
[probe.dead]
position = "st.global"
before = """
.reg .b32 %c;
{}
"""
'''


@pytest.mark.parametrize("snippet", ["add.u32 %c, %c, 1;", "mov.u32 %c, BYTES;", ""])
def test_a_part_without_effect_is_refused(snippet: str) -> None:
    with pytest.raises(ProbeFileError) as caught:
        toml_probe(frame("") + DEAD.format(snippet), "bad")
    line = f", line {frame('').count(chr(10)) + 6}" if snippet else ""
    advice = "has no effect on saved values; save a value that this snippet computes"
    assert str(caught.value) == f"bad.toml{line}: [dead] {advice}"


def test_a_register_that_decides_whether_something_is_saved_has_an_effect() -> None:
    text = frame("setp.ne.u32 %yes, %c, 0; @%yes bra over; mov.u64 %a, 1; over:") + DEAD.format("mov.u32 %c, 1;")
    toml_probe(text)


@pytest.mark.parametrize("position", ["block", "block.load", "loop", "phase"])
def test_nothing_runs_after_a_block(position: str) -> None:
    text = frame("", position).replace("before =", "after =")
    with pytest.raises(ProbeFileError) as caught:
        toml_probe(text, "bad")
    reason = "[p] is at 'block', 'loop' or 'phase', which support only 'before'; write 'before'"
    assert str(caught.value).startswith("bad.toml, line ")
    assert str(caught.value).endswith(reason)
