"""One kernel and what it needs."""

from __future__ import annotations

import pytest

from tests.ptx.corpus import HEADER, corpus
from tui_probe.errors import PtxError
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import direct_references, names_in, prune_to_kernel, references
from tui_probe.ptx.tree import Function, Module, Variable


def kernel(module: Module, name: str) -> Function:
    return next(entry for entry in module.entries() if entry.name == name)


def names(text: str) -> list[str]:
    return [item.name for item in parse(text).items if isinstance(item, Function | Variable)]


def test_names_match_exactly() -> None:
    module = parse(corpus("separate.rdc.sm_80.ptx"))
    pruned = prune_to_kernel(module, "gemm")
    assert set(names(pruned)) == {
        "defined_elsewhere",
        "offered",
        "_Z13weak_functionIiET_S0_",
        "gemm",
    }
    assert "splitk" not in pruned


def test_unknown_kernel_lists_near_names() -> None:
    module = parse(corpus("separate.rdc.sm_80.ptx"))
    with pytest.raises(PtxError, match=r"gemm_splitkk.*did you mean gemm_splitk"):
        prune_to_kernel(module, "gemm_splitkk")
    with pytest.raises(PtxError, match="it has gemm, gemm_splitk"):
        prune_to_kernel(module, "zzz")


def test_declaration_is_no_kernel() -> None:
    with pytest.raises(PtxError, match="no kernel named k"):
        prune_to_kernel(parse(HEADER + ".extern .entry k(.param .b32 x);"), "k")


def test_pointers_in_initialisers_pull_in_what_they_point_to() -> None:
    module = parse(corpus("variables.sm_80.ptx"))
    needed = references(module, kernel(module, "uses_pointers"))
    assert {"plain", "pointer", "initialised", "first", "last", "words"} <= needed
    assert {"$str", "$str$1", "$str$2"} <= needed
    assert "table" not in needed
    assert "coefficients" not in needed


def test_functions_named_in_initialisers_and_called_ones() -> None:
    module = parse(corpus("calls.sm_80.ptx"))
    assert references(module, kernel(module, "calls_table")) == {"operations", "chosen", "_Z5twicei", "_Z6negatei"}
    assert references(module, kernel(module, "calls_recursive")) == {"_Z9factoriali"}
    assert {"vprintf", "malloc", "free", "__assertfail"} <= references(module, kernel(module, "calls_runtime"))


def test_initialiser_that_names_a_function_is_found() -> None:
    module = parse(corpus("calls.sm_80.ptx"))
    functions = {function.name for function in module.functions()}
    variables = [item for item in module.items if isinstance(item, Variable)]
    tables = {variable.name for variable in variables if direct_references(variable) & functions}
    assert {"operations", "chosen"} <= tables
    assert not tables & {"$str"}


def test_calltargets_alias_and_shared_declarations() -> None:
    module = parse(corpus("grammar.sm_80.ptx"))
    pruned = prune_to_kernel(module, "indirect")
    assert ".alias other_name, on_one;" in pruned
    assert names(pruned)[-1] == "indirect"
    assert {"on_zero", "on_one", "handlers", "first", "second", "third"} <= set(names(pruned))
    assert "matrix" not in pruned


def test_local_names_hide_those_of_the_module() -> None:
    text = ".global .b32 a; .global .b32 b; .global .b32 c;\n"
    body = (
        ".entry k(.param .b32 a) { ld.param.b32 %r1, [a]; { .param .b32 b; st.param.b32 [b], %r1; } mov.u64 %rd1, c; }"
    )
    module = parse(HEADER + text + body)
    assert references(module, kernel(module, "k")) == {"c"}


def test_opcodes_are_no_references() -> None:
    module = parse(
        HEADER + ".func add() { ret; } .func other() { ret; } .entry k() { add.u32 %r1, %r1, 1; call other; }"
    )
    assert references(module, kernel(module, "k")) == {"other"}


def test_debug_sections_go_and_needed_strings_stay() -> None:
    module = parse(corpus("calls.lineinfo.sm_90.ptx"))
    pruned = prune_to_kernel(module, "calls_virtual")
    assert "inlined_at" in pruned
    labels = {text.split(",")[0] for text in pruned.split("function_name ")[1:]}
    assert labels
    for label in labels:
        assert f"{label}:" in pruned
    assert ".debug_info" not in pruned
    assert ".file" in pruned
    assert ".debug_str" not in prune_to_kernel(module, "calls_plain")


def test_target_without_debug_information_asks_for_none() -> None:
    source = ".version 9.0\n.target sm_90, texmode_independent, debug\n.address_size 64\n.entry k() { ret; }\n"
    sections = ".section .debug_info { .b32 1 }\n.section .debug_abbrev { .b8 0 }\n"
    pruned = prune_to_kernel(parse(source + sections), "k")
    assert pruned == ".version 9.0\n.target sm_90, texmode_independent\n.address_size 64\n.entry k() { ret; }\n"


def test_files_that_no_location_names_go() -> None:
    files = '.file 1 "a.cu"\n.file 2 "b.cu"\n.file 3 "c.cu"\n'
    body = ".entry k() { .loc 3 1 1, function_name $s, inlined_at 1 2 3\nret; }\n"
    pruned = parse(prune_to_kernel(parse(HEADER + body + files), "k"))
    assert pruned.files == {1: "a.cu", 3: "c.cu"}


@pytest.mark.parametrize("text", ["{generic(a), b+4, 0x1F}", "{ a , mask(0xFF)(b) }"])
def test_names_in_initialisers(text: str) -> None:
    assert {"a", "b"} <= names_in(text)
