"""Any text gives a tree or a PtxError, and a tree has all of the text's tokens."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.ptx.strategies import mutated, soup
from tests.ptx.whole import print_module
from tests.turns import examples
from tui_probe.errors import PtxError
from tui_probe.ptx.operands import tokens
from tui_probe.ptx.parser import parse
from tui_probe.ptx.references import prune_to_kernel


def check(text: str) -> None:
    try:
        module = parse(text)
        printed = print_module(module)
    except PtxError as error:
        line = error.line
    else:
        assert tokens(printed) == tokens(text)
        for entry in module.entries():
            if entry.body_span is not None:
                parse(prune_to_kernel(module, entry.name))
        return
    assert 0 <= line <= text.count("\n") + 1


@given(soup())
@settings(max_examples=examples(400), deadline=None)
def test_soup(text: str) -> None:
    check(text)


@given(mutated())
@settings(
    max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
def test_mutated_files(text: str) -> None:
    check(text)
