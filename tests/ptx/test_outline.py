"""The target and the kernels of PTX text that was not parsed."""

from __future__ import annotations

import pytest

from tests.ptx.corpus import NAMES, corpus
from tui_probe.ptx.lexer import PtxTarget, kernel_names, ptx_target
from tui_probe.ptx.parser import parse

HEAD = ".version 9.4\n.target sm_90\n.address_size 64\n"
KERNEL = ".visible .entry kept(.param .u64 words) { ret; }\n"


@pytest.mark.parametrize("name", NAMES)
def test_outline_agrees_with_parser(name: str) -> None:
    text = corpus(name)
    module = parse(text)
    assert list(kernel_names(text)) == [function.name for function in module.entries()]
    assert str(ptx_target(text)) == module.target.rstrip(",")


@pytest.mark.parametrize(
    "other",
    [
        "// .visible .entry other() { ret; }\n",
        "/* .visible .entry other() { ret; } */",
        "/* // */ // /* .entry other\n",
        '.pragma ".entry other() {";\n',
        '.file 1 "dir\\"\n// .entry other\n',
        '.file 1 "two lines // \n .entry other"\n',
        ".nv_intermediate_source_section { .code_block { .source_begin\n.entry other() {\n.source_end\n}}\n",
        '.nv_intermediate_source_section { .code_block { .source_begin\n" .source_end /*\n  .source_end\t\n}}\n',
    ],
)
def test_kernel_names_ignores_comments_strings_and_sources(other: str) -> None:
    for text in (HEAD + other + KERNEL, HEAD + KERNEL + other):
        assert list(kernel_names(text)) == ["kept"]
        assert [function.name for function in parse(text).entries()] == ["kept"]


def test_kernel_names_passes_comments_before_the_name() -> None:
    text = HEAD + ".visible /* .entry a */ .entry // b (\n $kept /* ) { */ ( .param /* , */ .u64 words ) { ret; }"
    assert list(kernel_names(text)) == ["$kept"]


def test_target_of_ignores_comments() -> None:
    assert ptx_target("// .version 7.0\n/* .target sm_75 */" + HEAD) == PtxTarget(90, "")
    assert ptx_target(".version 9.4 .target sm_103f .address_size 64") == PtxTarget(103, "f")
    assert ptx_target("// .version 7.0 .target sm_75") is None
