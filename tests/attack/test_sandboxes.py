"""Programs that forbid themselves system calls: the hook makes none of them on their threads."""

from __future__ import annotations

import pytest

from tests.attack.conftest import Start
from tests.attack.test_programs import counts
from tests.hook.conftest import Host, Run


def run_in_sandbox(host: Host, start: Start, kind: str) -> Run:
    run = host.finish(start("sandbox", kind))
    if run.status == 77:
        pytest.skip("seccomp is not allowed")
    assert (run.status, run.stdout, run.stderr) == (3, "done\n", "")
    return run


@pytest.mark.parametrize("kind", ["kill", "errno"])
def test_sandbox_of_one_thread_loses_nothing(host: Host, start: Start, kind: str) -> None:
    run = run_in_sandbox(host, start, kind)
    assert (counts(run), len(run.results)) == ({"launches": 20, "probed": 20, "dropped": 0}, 20)
