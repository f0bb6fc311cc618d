"""The list of reasons is consistent, and all code takes its reasons from there."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import tui_probe
from tui_probe.reasons import PARAMETER_KINDS, ListedReason, because, listed_reasons, read_list

PACKAGE = Path(tui_probe.__file__).parent
LISTED = list(listed_reasons().values())
ENTRY = 'REASON(A, "a", (%s), "%s", %s)'


@pytest.mark.parametrize("listed", LISTED, ids=[entry.code for entry in LISTED])
def test_each_reason_is_whole(listed: ListedReason) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", listed.code)
    assert listed.name == listed.code.upper().replace("-", "_")
    assert re.findall(r"\{(\w+)\}", listed.sentence) == list(listed.parameters), (
        "in the order of the sentence, each once"
    )
    assert set(re.findall(r"\{(\w+)\}", listed.advice)) <= set(listed.parameters)
    assert bool(listed.advice) != bool(listed.no_advice), "what to do, or why there is nothing to do"
    assert listed.advice[:1] == listed.advice[:1].upper()
    assert not listed.advice or listed.advice.endswith(".")
    assert "\n" not in listed.sentence + listed.advice


def test_each_reason_is_raised() -> None:
    """A reason that nothing raises any more is deleted with its sentence and advice."""
    hook = PACKAGE.parent / "hook"
    c = "\n".join(path.read_text() for path in hook.rglob("*.[ch]"))
    python = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    named = set(re.findall(r"\b[A-Z0-9_]+\b", c))
    raised = {
        listed.code
        for listed in LISTED
        if {listed.name, f"REASON_{listed.name}"} & named or f'"{listed.code}"' in python
    }
    assert {listed.code for listed in LISTED} - raised == set()


def test_no_two_reasons_are_the_same() -> None:
    text = (PACKAGE / "reasons" / "reasons.def").read_text()
    assert len(LISTED) == text.count("\nREASON(")
    assert len({entry.name for entry in LISTED}) == len(LISTED)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("REASON(A)", "line 1: expected REASON"),
        ("\nOTHER(A)", "line 2: expected REASON"),
        (ENTRY % ("LETTER(a)", "{a}", 'ADVICE("x")'), "expected a parameter such as NUMBER"),
        ('OLDER(A, "a")', "line 1: expected REASON"),
        (ENTRY % ("", "a", '"x"'), "advice must be"),
        (ENTRY % ("", "a", "ADVICE_OF(B)"), "advice must be"),
        (ENTRY % ("", "a", "ADVICE(x)"), "a text in quotes"),
    ],
)
def test_a_damaged_list_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        list(read_list(text))


def test_a_reason_is_made_as_listed() -> None:
    assert because("trace-full", limit="10M").text == "trace is full (10M)"
    assert because("no-address", line=7, instruction="bar").text == "line 7: bar has no ADDR: it does not access memory"
    assert because("ptx-unreadable", words="two\nlines\tand a tab").text == "two lines and a tab"
    with pytest.raises(KeyError):
        because("no-such-reason")
    for parameters in ({}, {"limit": 1, "more": 2}, {"size": 1}):
        with pytest.raises(ValueError, match="trace-full takes limit"):
            because("trace-full", **parameters)


MAKES_REASONS = re.compile(r"\b(because|Reason|UnsupportedKernelError|ToolchainError|Answer)\(")
"""Calls that tests below ask for: other modules need not be parsed."""


@cache
def named_calls() -> dict[str, list[tuple[str, ast.Call]]]:
    """All calls in the package of what has a plain name, by this name, with their place."""
    named: dict[str, list[tuple[str, ast.Call]]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if MAKES_REASONS.search(source) else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                named[node.func.id].append((str(path.relative_to(PACKAGE)), node))
    return named


def calls(name: str) -> list[tuple[str, ast.Call]]:
    """All calls of a function or class of that name in the package, with their place."""
    assert MAKES_REASONS.fullmatch(f"{name}(")
    return named_calls()[name]


def test_python_names_reasons_of_the_list() -> None:
    """Each ``because`` has a code of the list, and the parameters of its sentence."""
    made = [(place, call) for place, call in calls("because") if isinstance(call.args[0], ast.Constant)]
    assert len(made) > 20
    for place, call in made:
        code = ast.literal_eval(call.args[0])
        assert code in listed_reasons(), f"{place}, line {call.lineno}: {code}"
        given = {keyword.arg for keyword in call.keywords} - {"line"}
        if None not in given:  # ** of a dict
            assert given == set(listed_reasons()[code].parameters), f"{place}, line {call.lineno}: {code}"


def test_python_reasons_have_codes() -> None:
    """Reasons are made by ``because``; errors that refuse a kernel and answers that do not serve it take such a one."""
    allowed = {
        "engine/reception.py": 1,  # of words and code as sent
        "trace/launches.py": 1,  # of too many to keep
        "trace/unprobed.py": 1, "pages/unprobed_kernels.py": 1,  # of a log that gives none
    }  # fmt: skip
    made = [place for place, _ in calls("Reason") if not place.startswith("reasons/")]
    assert {place: made.count(place) for place in made} == allowed
    for name in ("UnsupportedKernelError", "ToolchainError"):
        for place, call in calls(name):
            if place != "toolchain.py":  # reads machine code for a page
                assert not isinstance(call.args[0], ast.Constant | ast.JoinedStr), f"{place}, line {call.lineno}"
    for place, call in calls("Answer"):
        if place.startswith("engine/"):
            assert ast.literal_eval(call.args[0]) in ("ok", "later"), f"{place}, line {call.lineno}"


def test_kinds_of_parameters_have_no_line_break() -> None:
    for kind in PARAMETER_KINDS.values():
        assert re.fullmatch(kind, "a\nb") is None or kind == PARAMETER_KINDS["ERRNO"]
