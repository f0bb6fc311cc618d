"""Detection of a slow link from the duration of writes."""

from __future__ import annotations

import io
import os
import threading

from tui_probe.ui.driver import HOLD_SECONDS, MAX_HOLD_SECONDS, Link, TimedFile


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def link() -> tuple[Link, Clock]:
    clock = Clock()
    return Link(clock), clock


def test_writes_that_wait_make_it_slow_and_a_time_without_makes_it_fast() -> None:
    the_link, clock = link()
    the_link.add_write(0.01)
    assert not the_link.is_slow
    the_link.add_write(0.3)
    assert not the_link.is_slow
    clock.now += 1
    the_link.add_write(0.3)
    assert the_link.is_slow
    clock.now += HOLD_SECONDS - 0.1
    assert the_link.is_slow
    clock.now += 0.2
    assert not the_link.is_slow


def test_waits_far_apart_do_not_count_together() -> None:
    the_link, clock = link()
    for _ in range(20):
        the_link.add_write(0.3)
        clock.now += 6
    assert not the_link.is_slow


def test_repeatedly_slow_link_is_measured_less_often() -> None:
    the_link, clock = link()
    holds = []
    for _ in range(8):
        the_link.add_write(1.0)
        start = clock.now
        while the_link.is_slow:
            clock.now += 1
        holds.append(clock.now - start)
    assert holds == [20, 40, 80, 160, 320, MAX_HOLD_SECONDS, MAX_HOLD_SECONDS, MAX_HOLD_SECONDS]
    clock.now += 2 * MAX_HOLD_SECONDS
    the_link.add_write(1.0)
    clock.now += HOLD_SECONDS + 1
    assert not the_link.is_slow


def test_a_file_that_nobody_reads_makes_the_link_slow() -> None:
    """A pipe that is full, until someone reads."""
    reader, writer = os.pipe()
    the_link = Link()
    with os.fdopen(writer, "w", encoding="utf-8") as pipe:
        file = TimedFile(pipe, the_link)
        timer = threading.Timer(0.7, lambda: os.read(reader, 1 << 20))
        timer.start()
        file.write("x" * (70 << 10))  # a pipe holds 64 KiB
        file.flush()
        timer.join()
        assert the_link.is_slow
        assert file.fileno() == writer
        assert not file.isatty()
    os.close(reader)


def test_a_file_that_takes_all_does_not() -> None:
    the_link = Link()
    file = io.StringIO()
    TimedFile(file, the_link).write("text")
    assert file.getvalue() == "text"
    assert not the_link.is_slow
