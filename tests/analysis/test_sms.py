"""Numbers of SMs are looked at before anything is looked up by them."""

from __future__ import annotations

import numpy as np
import pytest

from tui_probe.errors import TraceError
from tui_probe.records.sm_clocks import MAX_SMS, distinct_sms


def test_sms_and_the_place_of_each_record() -> None:
    sms, place = distinct_sms(np.array([7, 0, 7, 130], dtype=np.uint32))
    assert (sms.tolist(), place.tolist()) == ([0, 7, 130], [1, 0, 1, 2])


@pytest.mark.parametrize("wrong", [MAX_SMS, 0xFFFFFFFF])
def test_missing_sms(wrong: int) -> None:
    with pytest.raises(TraceError, match=f"a record has the SM number {wrong}"):
        distinct_sms(np.array([1, wrong], dtype=np.uint32))
