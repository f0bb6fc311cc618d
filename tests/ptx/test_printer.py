"""Trees that were changed, printed."""

from __future__ import annotations

from dataclasses import replace

from tests.ptx.corpus import HEADER, corpus
from tui_probe.ptx.parser import parse
from tui_probe.ptx.printer import (
    MADE_UP,
    print_function,
    print_instruction,
    print_module,
    print_statement,
    print_variable,
    tokens,
)
from tui_probe.ptx.tree import (
    Directive,
    Function,
    Immediate,
    Instruction,
    Label,
    Location,
    Memory,
    Register,
    Scope,
    Symbol,
    Variable,
    Vector,
)

R1, RD1, P1 = Register("%r1"), Register("%rd1"), Register("%p1")


def test_instruction() -> None:
    load = Instruction("ld", ("global", "v2", "b32"), (Vector((R1, Symbol("_"))), Memory(RD1, -8)), MADE_UP, P1, True)
    assert print_instruction(load) == "@!%p1 ld.global.v2.b32 {%r1, _}, [%rd1+-8];"
    assert print_instruction(Instruction("ret", (), (), MADE_UP)) == "ret;"


def test_statements() -> None:
    assert print_statement(Label("$done", MADE_UP), "") == "$done:"
    assert print_statement(Label("t", MADE_UP, ".branchtargets a, b;"), "") == "t: .branchtargets a, b;"
    assert print_statement(Location(1, 2, 3, MADE_UP), "") == ".loc 1 2 3"
    assert print_statement(Directive("pragma", '.pragma "nounroll";', MADE_UP), "") == '.pragma "nounroll";'
    scope = Scope([Instruction("exit", (), (), MADE_UP)], MADE_UP)
    assert tokens(print_statement(scope, "")) == ["{", "exit", ";", "}"]


def test_variables() -> None:
    assert print_variable(Variable("reg", "b32", "%r", MADE_UP, count=5)) == ".reg .b32 %r<5>"
    shared = Variable(
        "shared", "f32", "tile", MADE_UP, align=16, vector=4, shape=(2, 0), is_array=True, linkage="extern"
    )
    assert print_variable(shared) == ".extern .shared .align 16 .v4 .f32 tile[2][]"
    assert print_variable(Variable("global", "u32", "a", MADE_UP, initializer="7")) == ".global .u32 a = 7"


def test_function_from_its_fields() -> None:
    function = Function(
        "entry",
        "k",
        [
            Variable("param", "u64", "a", MADE_UP),
            Variable("param", "b8", "s", MADE_UP, align=8, shape=(16,), is_array=True),
        ],
        MADE_UP,
        linkage="visible",
        attributes={"reqntid": "64", "pragma": '"nounroll"'},
        body=[Instruction("ret", (), (), MADE_UP)],
    )
    parsed = parse(HEADER + print_function(function, "")).entries()[0]
    assert [(p.name, p.size_bytes) for p in parsed.parameters] == [("a", 8), ("s", 16)]
    assert parsed.attributes == function.attributes
    assert [i.opcode for i in parsed.body or [] if isinstance(i, Instruction)] == ["ret"]


def test_a_declaration_keeps_its_semicolon() -> None:
    source = HEADER + ".extern .func (.param .b32 r) f (.param .b64 a);\n.func g ;"
    assert tokens(print_module(parse(source))) == tokens(source)
    assert print_function(Function("func", "h", [], MADE_UP), "") == ".func h()\n;"


def test_an_inserted_parameter_and_statement() -> None:
    module = parse(corpus("control.sm_80.ptx"))
    kernel = module.entries()[2]
    assert kernel.body is not None
    extra = Variable("param", "u64", "added", MADE_UP)
    body = [Instruction("mov", ("u32",), (R1, Immediate("7")), MADE_UP), *kernel.body]
    changed = replace(kernel, parameters=[*kernel.parameters, extra], body=body, span=MADE_UP)
    printed = parse(HEADER + print_function(changed, module.source)).entries()[0]
    assert [p.name for p in printed.parameters] == [*(p.name for p in kernel.parameters), "added"]
    assert printed.body is not None
    assert len(printed.body) == len(kernel.body) + 1


def test_variables_of_one_declaration_print_once() -> None:
    source = HEADER + ".entry k() { .reg .b32 a, b, %r<5>; .reg .b32 c; ret; }"
    assert tokens(print_module(parse(source))) == tokens(source)
