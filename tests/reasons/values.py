"""Reasons made up for tests: any code of the list, with any parameters that it may have."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from tui_probe.reasons import ListedReason, Reason, because, listed_reasons

_LETTERS = st.characters(exclude_categories=["C", "Z"], exclude_characters="\x85")
_TEXT = st.text(_LETTERS | st.sampled_from(" :()./"), min_size=1, max_size=60)
_VALUES = {
    "NUMBER": st.integers(0, 2**64 - 1).map(str),
    "WORD": st.text(_LETTERS, min_size=1, max_size=40),
    "CUDA": st.from_regex(r"CUDA_ERROR_[A-Z0-9_]{1,30}|error -?[0-9]{1,9}", fullmatch=True),
    "ERRNO": st.text(_LETTERS | st.just(" "), min_size=1, max_size=40)
    .map(lambda text: re.sub(r"[:()]", "", text))
    .filter(bool),
    "TEXT": _TEXT,
}


@st.composite
def parameters(draw: st.DrawFn, listed: ListedReason) -> dict[str, str]:
    """Values for the parameters of a reason."""
    return {name: draw(_VALUES[kind]) for name, kind in listed.parameters.items()}


@st.composite
def reasons(draw: st.DrawFn) -> Reason:
    """Any reason with any parameters."""
    listed = draw(st.sampled_from(sorted(listed_reasons().values(), key=lambda each: each.code)))
    return because(listed.code, **draw(parameters(listed)))
