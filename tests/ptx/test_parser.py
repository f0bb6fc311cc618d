"""PTX text to the tree: what each form becomes."""

from __future__ import annotations

import pytest

from tui_probe.errors import PtxError
from tui_probe.ptx.parser import parse
from tui_probe.ptx.tree import Immediate, Instruction, Memory, OperandList, Register, Scope, Symbol

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"


def test_kernel_with_parameters_and_attributes() -> None:
    module = parse(
        HEADER + ".visible .entry k(.param .u64 .ptr .global .align 1 a, .param .b32 n)\n.reqntid 256\n{ ret; }"
    )
    (kernel,) = module.entries()
    assert (kernel.name, kernel.linkage, kernel.attributes) == ("k", "visible", {"reqntid": "256"})
    assert [(p.name, p.type, p.size_bytes) for p in kernel.parameters] == [("a", "u64", 8), ("n", "b32", 4)]
    assert module.target == "sm_90a"


def test_names_declared_in_a_scope_are_registers_there_only() -> None:
    body = (
        parse(HEADER + ".entry k() { mov.b32 %r1, a; { .reg .b32 a, b<2>; add.s32 a, b1, b2; } }").functions()[0].body
    )
    assert body is not None
    first, scope = body
    assert isinstance(first, Instruction)
    assert first.operands == (Register("%r1"), Symbol("a"))
    assert isinstance(scope, Scope)
    inner = scope.body[-1]
    assert isinstance(inner, Instruction)
    assert inner.operands == (Register("a"), Register("b1"), Symbol("b2"))


def test_call_with_prototype() -> None:
    body = (
        parse(HEADER + ".entry k() { @!%p1 call (r),\n%rd1, (a, b), proto; ld.u32 %r1, [%rd2+-4]; }")
        .functions()[0]
        .body
    )
    assert body is not None
    call, load = body
    assert isinstance(call, Instruction)
    assert isinstance(load, Instruction)
    assert call.operands == (
        OperandList((Symbol("r"),)),
        Register("%rd1"),
        OperandList((Symbol("a"), Symbol("b"))),
        Symbol("proto"),
    )
    assert (call.predicate, call.predicate_negated) == (Register("%p1"), True)
    assert load.operands == (Register("%r1"), Memory(Register("%rd2"), -4))


def test_literals_stay_as_written() -> None:
    body = (
        parse(HEADER + ".entry k() { mov.f32 %f1, 0f3F800000; mov.u32 %r1, 0x1FU; mov.s32 %r2, -1; }")
        .functions()[0]
        .body
    )
    assert body is not None
    texts = [s.operands[1] for s in body if isinstance(s, Instruction)]
    assert texts == [Immediate("0f3F800000"), Immediate("0x1FU"), Immediate("-1")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (".entry k() {\nret;", 4),
        ('.file 1 "a', 4),
        ("\n/* x", 5),
        (".entry k()", 4),
        (".global .b32 x", 4),
        ("}", 4),
    ],
)
def test_damage_names_its_line(text: str, line: int) -> None:
    with pytest.raises(PtxError) as caught:
        parse(HEADER + text)
    assert caught.value.line == line


MANY = 5000 * "9"


@pytest.mark.parametrize(
    "text",
    [
        f".version {MANY}.0\n",
        f".version 8.{MANY}\n",
        f'.version 8.0\n.target sm_80\n.file {MANY} "a.cu"\n',
    ],
)
def test_numbers_that_no_ptx_has(text: str) -> None:
    with pytest.raises(PtxError, match="a number has 5000 digits"):
        parse(text)


def test_text_without_version_is_refused() -> None:
    with pytest.raises(PtxError, match=r"\.version"):
        parse("")


SOURCE = """.nv_intermediate_source_section {
.code_block {
.ir_name: "some } ir"
.source_begin
for i in range { // and " so /* on .source_end
.source_ending
.visible .entry other() { ret; }
 .source_end
}
}
"""


@pytest.mark.parametrize("order", ["{source}{kernel}", "{kernel}{source}", "{source}{kernel}{source}"])
def test_source_text_of_another_language_is_opaque(order: str) -> None:
    kernel = ".entry k() {\n.loc 1 2 5\n.loc_intermediate 2 1 10\nmov.u32 %r1, 1;\nret;\n}\n"
    module = parse(HEADER + order.format(source=SOURCE, kernel=kernel))
    assert [function.name for function in module.functions()] == ["k"]
    body = module.functions()[0].body or []
    assert [node.opcode for node in body if isinstance(node, Instruction)] == ["mov", "ret"]


@pytest.mark.parametrize(
    "declaration",
    [
        ".visible .func (.param .u32 sum) twice (.param .u32 value)",
        ".extern .func twice",
        ".func twice(.param .u32 value) .noreturn",
        ".weak .func .attribute(.unified(1, 2)) twice (.param .u32 value) // ;",
    ],
)
@pytest.mark.parametrize(
    "follower",
    [
        ".visible .entry next() { ret; }",
        ".func next() { ret; }",
        ".func next()",
        ".global .u32 next;",
        ".alias next, other;",
        '.file 1 "next"',
        ".section .debug_str { next: .b8 0 }",
        "@@DWARF .byte next",
        "",
    ],
)
def test_function_declaration_needs_no_semicolon(declaration: str, follower: str) -> None:
    module = parse(f"{HEADER}{declaration}\n{follower}")
    first, *others = module.items[3:]
    assert getattr(first, "name", "") == "twice"
    assert getattr(first, "body_span", 0) is None
    assert module.source[first.span.start : first.span.end] == declaration.partition(" //")[0]
    assert len(others) == bool(follower)


@pytest.mark.parametrize("text", [".entry k()\n.entry j() { ret; }", ".func f(.param .u32 a\n.entry j() { ret; }"])
def test_kernel_header_needs_its_body(text: str) -> None:
    with pytest.raises(PtxError):
        parse(HEADER + text)
