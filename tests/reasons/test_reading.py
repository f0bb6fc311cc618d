"""A reason that was written into a log is read as the same one, with its code and parameters; older logs have none."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reasons.values import parameters, reasons
from tui_probe.reasons import Reason, advice_on, because, because_of_file, listed_reasons, read_reason
from tui_probe.trace.events import parse_line
from tui_probe.trace.launch_events import KernelPrepared


@given(st.data())
def test_code_and_parameters_come_back_from_a_line(data: st.DataObject) -> None:
    listed = data.draw(st.sampled_from(sorted(listed_reasons().values(), key=lambda each: each.code)))
    given_ones = data.draw(parameters(listed))
    at = data.draw(st.integers(0, 10**6))
    made = because(listed.code, line=at, **given_ones)
    line = f"[kernel] 3 failed registers 1 local 0 shared 0 blocks 8 name f reason {made.written}"
    event = parse_line(line.encode())
    assert isinstance(event, KernelPrepared)
    assert event.reason == made
    assert (made.code, made.line, dict(made.parameters)) == (listed.code, at, given_ones)


@given(reasons(), st.integers(1, 60))
def test_truncated_reason_keeps_its_code(made: Reason, most: int) -> None:
    short = made.shortened(most)
    assert len(short.text.encode()) <= most
    assert read_reason(short.written).code == made.code


@pytest.mark.parametrize(
    "said",
    [
        "the trace is a long one", "no ptxas here", "memory", "trace is full", "trace is full (many bytes)",
        "my own engine has no PTX in image", "no PTX in image, none at all", "capture", "",
        "no PTX in image code of-another-version", "no PTX in image code no-ptx ",
    ],
)  # fmt: skip
def test_other_words_have_none(said: str) -> None:
    """Nothing is looked for in the middle of a sentence."""
    assert read_reason(said) == (said, None)


def test_the_last_code_of_a_line_counts() -> None:
    assert read_reason("/my code no-ptx: Disk quota exceeded code disk-full").code == "disk-full"


@pytest.mark.parametrize(
    ("number", "code"),
    [(28, "disk-full"), (122, "disk-full"), (30, "not-permitted"), (13, "not-permitted"), (27, "file-limit"),
     (5, "file-error"), (12, "host-memory")],
)  # fmt: skip
def test_errors_of_files_are_distinguished(number: int, code: str) -> None:
    reason = because_of_file("/trace/x: y (z)", OSError(number, os.strerror(number)))
    assert reason.code == code
    assert code == "host-memory" or reason.parameters == {"path": "/trace/x: y (z)", "error": os.strerror(number)}


def test_an_error_of_a_file_without_a_number_has_words() -> None:
    assert because_of_file("a", OSError("strange: (so)")).text == "a: strange   so "


def test_advice_has_the_parameters_or_is_none() -> None:
    assert "Call f by its name" in advice_on("function-by-pointer", {"function": "f"})
    assert advice_on("function-by-pointer", {}) == "", "the sentence was cut off"
    assert advice_on("measured", {}) == advice_on(None, {}) == advice_on("of-tomorrow", {}) == ""
