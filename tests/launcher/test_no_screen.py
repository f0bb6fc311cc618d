"""Without a terminal at every end, or one that cannot place text, nothing is drawn and nothing waits for keys."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from .terminal import terminal

if TYPE_CHECKING:
    from .conftest import Runner

IMPORTS = "import sys; from tui_probe.cli.main import main; s = main(sys.argv[1:]); print('textual' in sys.modules, s)"


def test_textual_is_not_imported(tool: Runner) -> None:
    result = tool("run", "-p", "block_sched", "--sim", "--no-report", "true", program=IMPORTS)
    assert result.stdout == b"False 0\n"


@pytest.mark.parametrize("redirection", ["| cat", "2>&1 | cat", "2> /dev/null", "< /dev/null"])
def test_one_end_that_is_no_terminal(tool: Runner, redirection: str) -> None:
    command = shlex.join(tool.command("run", "-p", "block_sched", "--sim", "--no-report", "--", "echo", "done"))
    shell = ["/bin/sh", "-c", f"{command} {redirection}"]
    with terminal(shell, tool.folder, tool.environment | {"TERM": "xterm-256color"}) as screen:
        shown = screen.read_to_end()
        assert screen.wait() == 0
    assert b"done\n" in shown
    assert b"\x1b" not in shown


def test_a_terminal_that_cannot_place_text(tool: Runner) -> None:
    argv = tool.command("run", "-p", "block_sched", "--sim", "--no-report", "--", "echo", "done")
    with terminal(argv, tool.folder, tool.environment | {"TERM": "dumb"}) as screen:
        assert b"done\n" in screen.read_to_end()
        assert screen.wait() == 0
