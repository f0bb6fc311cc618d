"""Launches per second: the sparkline moves only with launches."""

from __future__ import annotations

from tui_probe.draw.spans import plain
from tui_probe.ui.live.state_line import SAMPLES, LaunchRate


def test_rate_does_not_move_while_nothing_is_launched() -> None:
    rate = LaunchRate()
    assert rate.line() == ()
    for second in range(3):
        rate.update(100 * second * (second + 1), float(second))
    before = rate.line()
    assert plain(before).endswith(" 400")
    for second in range(3, 60):
        rate.update(600, float(second))
    assert rate.line() == before


def test_rate_keeps_the_last_samples_and_takes_none_too_soon() -> None:
    rate = LaunchRate()
    for number in range(100):
        rate.update(number, number / 10)
    assert len(rate.samples) == SAMPLES
    assert set(map(round, rate.samples)) == {10}


def test_rate_begins_again_with_another_run() -> None:
    rate = LaunchRate()
    for launches, now in ((1000, 0.0), (5, 1.0), (15, 2.0)):
        rate.update(launches, now)
    assert list(rate.samples) == [10.0]
