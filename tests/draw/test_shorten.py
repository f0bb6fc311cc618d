"""Labels that are cut so that no two look alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_probe.draw.shorten import cut_apart, cut_middle, short_name, shorten
from tui_probe.draw.spans import width

METRICS = (
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum.pct_of_peak",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum.pct_of_peak",
    "l1tex__t_requests_pipe_lsu_mem_shared_op_st.sum.pct_of_peak",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
)


@pytest.mark.parametrize("cells", [12, 20, 24, 30])
def test_metrics_never_look_alike(cells: int) -> None:
    shorten = cut_apart(METRICS)
    shown = [shorten(name, cells) for name in METRICS]
    assert len(set(shown)) == len(METRICS)
    assert all(width(text) <= cells for text in shown)


def test_distinguishing_part_stays() -> None:
    shorten = cut_apart(METRICS)
    assert shorten(METRICS[0], 24) == "l1tex__t…m_global_op_ld…"
    assert shorten(METRICS[3], 24) == "l1tex__t_secto…op_st.sum"
    assert shorten(METRICS[3], 60) == METRICS[3]
    assert shorten("one that was not known before", 12) == "one tha…fore"


@given(st.lists(st.text("ab.", min_size=1, max_size=40), max_size=12), st.integers(8, 30))
def test_any_texts(texts: list[str], cells: int) -> None:
    shorten = cut_apart(texts)
    shown = {text: shorten(text, cells) for text in texts}
    assert len(set(shown.values())) == len(set(texts))
    assert all(width(short) <= cells for short in shown.values())


SIGNS = ["a", "_", "é", "漢", "e\u0301", "👩\u200d👩\u200d👧", "👍\U0001f3fd", "❤\ufe0f"]


@given(st.lists(st.sampled_from(SIGNS), max_size=40).map("".join), st.integers(1, 30))
def test_cut_middle_fits_cells_and_cuts_no_sign(text: str, cells: int) -> None:
    cut = cut_middle(text, cells)
    assert width(cut) <= cells
    if cut != text:
        head, more, tail = cut.partition("…")
        assert more
        assert text.startswith(head)
        assert text.endswith(tail)
        for start in (len(head), len(text) - len(tail)):
            assert text[start : start + 1] not in ("\u0301", "\u200d", "\U0001f3fd", "\ufe0f")
            assert text[start - 1 : start] != "\u200d"


def test_cut_middle_keeps_wide_characters_within_cells() -> None:
    assert cut_middle("漢字漢字漢字", 7) == "漢字…字"


def test_tags_of_numba_are_no_part_of_a_short_name() -> None:
    name = "__main__::scale[abi:v1][abi:cw51cXTLSUwv1sDUaKthoaNgoKm_3d](Array<float, 1, C, mutable, aligned>)"
    assert shorten(name, 40) == "scale"
    assert short_name(name) == "scale"
