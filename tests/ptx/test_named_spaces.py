"""Accesses that name a variable and no state space."""

from __future__ import annotations

import pytest

from tests.ptx.corpus import HEADER, NAMES, corpus, instructions
from tui_probe.ptx.instruction_facts import named_spaces
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Variable

MODULE = ".global .b32 far[4];\n.shared .b32 near[4];\n.func f(.param .b32 given) {{ ret; }}\n.entry k() {{ {} ret; }}"
INSIDE = ".shared .b32 tile[4]; .local .b32 own[4]; .reg .b64 pointer;"


def spaces_of(body: str) -> list[str]:
    module = parse(HEADER + MODULE.format(INSIDE + body))
    variables = [item for item in module.items if isinstance(item, Variable)]
    spaces = named_spaces(module.functions(), variables)
    return [spaces.get(id(instruction), "") for instruction in instructions(module) if instruction.opcode != "ret"]


@pytest.mark.parametrize(
    ("instruction", "space"),
    [
        ("st.u32 [tile], 1;", "shared"),
        ("ld.volatile.v2.u32 {%r1, %r2}, [near+8];", "shared"),
        ("@%p1 atom.add.u32 %r1, [tile + 4 * 2], 1;", "shared"),
        ("red.add.u32 [own+-0x4], 1;", "local"),
        ("st.u32 tile[%r1], 1;", "shared"),
        ("ld.u32 %r1, [far+010];", "global"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1}, [tile], %r2;", "shared"),
        ("st.shared.u32 [tile], 1;", ""),
        ("cp.async.ca.shared.global [tile], [far], 4;", ""),
        ("st.u32 [pointer + 4], 1;", ""),
        ("st.u32 [%rd1], tile;", ""),
        ("st.local.u32 [16], 1;", ""),
        ("mov.u64 %rd1, tile;", ""),
    ],
)
def test_named_spaces_reads_the_address(instruction: str, space: str) -> None:
    assert spaces_of(instruction) == [space]


def test_named_spaces_follows_scopes() -> None:
    inner = "{ .local .b32 tile; st.u32 [tile], 1; { .reg .b64 tile; st.u32 [tile], 1; } }"
    assert spaces_of(f"{inner} st.u32 [tile], 1;") == ["local", "", "shared"]


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.startswith(("variables", "triton_softmax", "callees"))]
)
def test_named_spaces_is_empty_for_compilers(name: str) -> None:
    module = parse(corpus(name))
    variables = [item for item in module.items if isinstance(item, Variable)]
    assert named_spaces(module.functions(), variables) == {}
