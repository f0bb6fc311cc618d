"""Every file of the corpus: parsed, printed, pruned, assembled."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ptx.corpus import FILES, NAMES, corpus, instructions, shape, statements
from tests.ptx.whole import print_module
from tests.turns import due
from tui_probe.ptx.operands import MADE_UP, print_instruction, tokens
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import prune_to_kernel
from tui_probe.ptx.tree import Directive, Function, Instruction, Module, Scope, Statement

ENTRIES = [(name, function.name) for name in NAMES for function in parse(corpus(name)).entries()]
NOT_ALONE = {("separate.rdc.sm_80.ptx", "gemm_splitk")}
"""Kernels that call what another part of their program defines."""


def test_the_corpus_is_there() -> None:
    assert len(FILES) >= 20
    assert len(ENTRIES) >= 70


@pytest.mark.parametrize("name", NAMES)
def test_prints_back_to_its_tokens(name: str) -> None:
    source = corpus(name)
    assert tokens(print_module(parse(source))) == tokens(source)


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_understood(name: str) -> None:
    module = parse(corpus(name))
    raw = [i for i in instructions(module) if any("Raw(" in repr(operand) for operand in i.operands) or not i.opcode]
    assert raw == []
    nodes = [node for function in module.functions() for node in statements(function.body or [])]
    assert {node.name for node in nodes if isinstance(node, Directive)} <= {"pragma"}
    assert all(item.name not in ("", "global", "const") for item in module.items if isinstance(item, Directive))


@pytest.mark.parametrize("name", NAMES)
def test_spans_and_lines(name: str) -> None:
    source = corpus(name)
    lines = source.split("\n")
    for instruction in instructions(parse(source)):
        text = source[instruction.span.start : instruction.span.end]
        assert text.endswith(";")
        assert text.split("\n")[0] in lines[instruction.span.line - 1]


@pytest.mark.parametrize("name", due(NAMES))
def test_comments_between_all_tokens_change_nothing(name: str) -> None:
    """The fast patterns and the lexer read the same tree."""
    source = corpus(name)
    spaced = "/* ; } */".join([" ", *tokens(source), " "])
    assert shape(parse(spaced)) == shape(parse(source))


@pytest.mark.parametrize("name", due(NAMES))
def test_made_up_instructions_parse_back(name: str) -> None:
    module = parse(corpus(name))
    remade = parse(print_module(_remade(module)))
    assert shape(remade) == shape(module)


def _remade(module: Module) -> Module:
    """The module with each instruction replaced by a made-up equal."""
    items = [_remade_function(item) if isinstance(item, Function) else item for item in module.items]
    return replace(module, items=items)


def _remade_function(function: Function) -> Function:
    return replace(function, body=[_remade_statement(node) for node in function.body]) if function.body else function


def _remade_statement(node: Statement) -> Statement:
    if isinstance(node, Scope):
        return replace(node, body=[_remade_statement(child) for child in node.body])
    return replace(node, span=MADE_UP) if isinstance(node, Instruction) else node


@pytest.mark.parametrize(("name", "entry"), ENTRIES)
def test_pruned_text_holds_only_its_kernel(name: str, entry: str) -> None:
    module = parse(corpus(name))
    pruned = parse(prune_to_kernel(module, entry))
    assert [kernel.name for kernel in pruned.entries()] == [entry]
    (kernel,) = [kernel for kernel in module.entries() if kernel.name == entry]
    assert shape(pruned.entries()[0]) == shape(kernel)
    assert prune_to_kernel(pruned, entry) == prune_to_kernel(parse(prune_to_kernel(pruned, entry)), entry)


def _ptxas() -> str | None:
    wheel = Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin" / "ptxas"
    if wheel.exists():
        return str(wheel)
    return shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")


@pytest.mark.parametrize(("name", "entry"), due(case for case in ENTRIES if case not in NOT_ALONE))
def test_pruned_assembles(name: str, entry: str, tmp_path: Path) -> None:
    ptxas = _ptxas()
    if ptxas is None:
        pytest.skip("no ptxas: neither the wheel nvidia-cuda-nvcc nor a CUDA toolkit is installed")
    module = parse(corpus(name))
    source = tmp_path / "pruned.ptx"
    source.write_text(prune_to_kernel(module, entry))
    done = subprocess.run(
        [ptxas, "-O0", f"-arch={module.target}", str(source), "-o", str(tmp_path / "out.cubin")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout


def test_instructions_print_as_they_were_written() -> None:
    source = corpus("triton_matmul.sm_80.ptx")
    for instruction in instructions(parse(source)):
        written = tokens(source[instruction.span.start : instruction.span.end].replace("+ 0 ]", "]"))
        assert tokens(print_instruction(instruction)) == written
