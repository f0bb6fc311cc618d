"""Numbers of SMs are looked at before anything is looked up by them."""

from __future__ import annotations

import numpy as np
import pytest

from tui_probe.analysis.sms import MOST_SMS, sms_of
from tui_probe.errors import TraceError


def test_sms_and_the_place_of_each_record() -> None:
    sms, place = sms_of(np.array([7, 0, 7, 130], dtype=np.uint32))
    assert (sms.tolist(), place.tolist()) == ([0, 7, 130], [1, 0, 1, 2])


@pytest.mark.parametrize("wrong", [MOST_SMS, 0xFFFFFFFF])
def test_what_is_no_sm(wrong: int) -> None:
    with pytest.raises(TraceError, match=f"a record names SM {wrong}"):
        sms_of(np.array([1, wrong], dtype=np.uint32))
