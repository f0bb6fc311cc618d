"""Threads with small stacks: what is large is done on threads of the hook."""

from __future__ import annotations

import pytest

from tests.attack.conftest import Start
from tests.hook.conftest import Host

DRIVER = 0
"""Bytes that the stub driver takes itself, at most."""


@pytest.mark.parametrize("settings", [{}, {"TUI_PROBE_LAUNCHES": "auto"}, {"TUI_PROBE_MEMUSAGE": "1"}])
def test_calls_use_under_4_kib_of_the_stack(host: Host, start: Start, settings: dict[str, str]) -> None:
    run = host.finish(start("small_stack", **settings))
    assert (run.status, run.stderr) == (0, "")
    used = {step: int(size) for step, size in (line.split() for line in run.stdout.splitlines())}
    assert {step: size for step, size in used.items() if size > 4096 + DRIVER} == {}
    assert len(used) == 6
