"""Output within a number of characters: what comes first stays, JSON stays valid, a command shows the rest."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tui_probe.draw.char_budget import first_records, fit_document, fit_lines, fit_rows

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=40,
)
COMMAND = "tui-probe report trace"


@given(st.dictionaries(st.sampled_from("abcdefgh"), VALUES), st.integers(200, 900))
def test_document_of_any_form_fits(fields: dict[str, Any], chars: int) -> None:
    document = {"schema": "tui-probe.x", "version": 1, **fields}
    text = fit_document(document, chars, COMMAND)
    assert len(text) <= chars
    shown = json.loads(text)
    assert (shown["schema"], shown["version"]) == ("tui-probe.x", 1)
    if shown != json.loads(json.dumps(document)):
        assert shown["omitted"]["command"] == COMMAND


def test_document_that_fits_is_unchanged() -> None:
    document = {"schema": "x", "version": 1, "rows": [{"a": 1}, {"a": 2}]}
    assert json.loads(fit_document(document, 200, COMMAND)) == document


def test_kept_lists_are_cut_last_and_from_their_ends() -> None:
    rows = [{"number": number, "text": "x" * 40} for number in range(20)]
    document = {"schema": "x", "version": 1, "kernels": rows, "findings": rows}
    shown = json.loads(fit_document(document, 1000, COMMAND, kept_fields=("findings",)))
    assert shown["kernels"] == []
    assert [row["number"] for row in shown["findings"]] == list(range(len(shown["findings"])))
    assert shown["omitted"]["rows"] == {"kernels": 20, "findings": 20 - len(shown["findings"])}
    assert shown["omitted"]["fields"] == []
    assert len(document["kernels"]) == 20, "the document itself is not changed"


def test_rows_beyond_are_counted() -> None:
    records, beyond = first_records(({"number": number} for number in range(1000)), 100)
    assert len(records) + beyond == 1000
    shown = json.loads(fit_document({"schema": "x", "version": 1, "rows": records}, 300, COMMAND, omitted_rows=beyond))
    assert shown["omitted"]["rows"]["rows"] + len(shown["rows"]) == 1000


@given(st.lists(st.text(max_size=60), max_size=30), st.integers(60, 600))
def test_lines_fit_with_their_line_breaks(lines: list[str], chars: int) -> None:
    shown = list(fit_lines(lines, chars, COMMAND))
    assert sum(len(line) + 1 for line in shown) <= chars
    assert all("\n" not in line for line in shown)


def test_line_break_of_the_last_line_counts() -> None:
    assert list(fit_lines(["x" * 99], 100, COMMAND)) == ["x" * 99]
    assert list(fit_lines(["x" * 100], 100, COMMAND)) == [f"1 line omitted; to show all: {COMMAND}"]


def test_lines_end_with_the_number_of_others() -> None:
    shown = list(fit_lines([f"line {number}" for number in range(100)], 120, COMMAND))
    assert shown[0] == "line 0"
    assert shown[-1] == f"{100 - len(shown) + 1} lines omitted; to show all: {COMMAND}"


def test_rows_of_csv_are_cut_between_rows() -> None:
    assert fit_rows(["a,b\n", "1,2\n", "3,4\n"], 8) == (["a,b", "1,2"], 1)
