"""Directories of traces: one for each program, and readable, no matter what the program does."""

from __future__ import annotations

import re
import sys

from tests.hook.conftest import Host

LAUNCH = "from host import *; context(); launch(function(module(), 'add')); "


def test_programs_with_one_id_keep_their_traces(host: Host) -> None:
    argv = "[sys.executable, '-c', os.environ['TEXT'], str(int(sys.argv[1]) - 1)]"
    text = f"import os, sys; {LAUNCH}sys.argv[1] == '0' or os.execv(sys.executable, {argv})"
    run = host.command(sys.executable, "-c", text, "5", TEXT=text, TUI_PROBE_STAMP="Nov21_010203")
    assert run.status == 0
    assert len(run.directories) == 6
    names = [re.fullmatch(r"[A-Z][a-z]{2}\d{2}_\d{6}_(\d+)(_\d+)?", directory.name) for directory in run.directories]
    assert len({name and name[1] for name in names}) == 1


def test_umask_of_the_program_does_not_close_its_trace(host: Host) -> None:
    run = host.python(f"import os; os.umask(0o777); {LAUNCH}")
    assert run.status == 0
    paths = [run.directory, *run.directory.rglob("*")]
    ours = [path for path in paths if path.name not in {"probed.bin", "kernel.info"}]  # those are the engine's
    closed = [path for path in ours if ~path.stat().st_mode & (0o700 if path.is_dir() else 0o600)]
    assert closed == []
    assert len(run.results) == 1
