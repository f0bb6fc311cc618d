"""The tools for agents, through the client of the SDK: on the simulated GPU, and what they refuse."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import HANG
from tui_probe.integrations import child_process
from tui_probe.integrations.child_process import CommandResult, announced_traces, run_tui_probe

if TYPE_CHECKING:
    from mcp.client.client import Client

PROGRAM = str(Path(__file__).with_name("faulty.py"))
STORES = f"""
import contextlib, os, runpy, sys, time
sys.argv = ["faulty.py", "1"]
with contextlib.suppress(SystemExit):
    runpy.run_path({PROGRAM!r})
open("pid", "w").write(str(os.getpid()))
time.sleep(600)
"""
SLEEPS = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"


@pytest.fixture
def natives_in_environment(natives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))


def client_of(root: Path) -> Client:
    """A client of a server in this process. To import the SDK takes 1 s, in each process that collects tests."""
    from mcp.client.client import Client

    from tui_probe.integrations.mcp_server import Roots, make_server

    return Client(make_server(Roots([root])))


async def call(client: Client, tool: str, **arguments: Any) -> tuple[str, bool]:
    """The text of a result, and whether it is an error."""
    result: Any = await client.call_tool(tool, arguments)
    return result.content[0].text, bool(result.is_error)


async def test_tools_are_few_and_described_in_6000_characters(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [
        "capabilities", "profile", "list_kernels", "explain_kernel", "compare", "expand", "source",
    ]  # fmt: skip
    assert sum(len(tool.model_dump_json(exclude_none=True)) for tool in tools) <= 6000


@pytest.mark.parametrize(
    ("tool", "arguments", "usage"),
    [
        (
            "list_kernels",
            {"kernel": "f", "max_char": 9},
            "argument kernel, max_char: its arguments are trace, max_chars",
        ),
        ("list_kernels", {"li\x1b[2Jne": 4}, "argument line: its arguments are trace, max_chars"),
        ("capabilities", {"verbose": True}, "argument verbose: it has no arguments"),
    ],
)
async def test_unknown_arguments_are_refused_with_the_known_ones(
    tmp_path: Path, tool: str, arguments: dict[str, Any], usage: str
) -> None:
    async with client_of(tmp_path) as client:
        text, failed = await call(client, tool, **arguments)
    assert failed
    assert text == f"{tool} has no {usage}"


@pytest.mark.usefixtures("natives_in_environment")
async def test_an_agent_finds_the_line_fixes_it_and_sees_that_it_is_better(tmp_path: Path) -> None:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    """Profile, brief, line, change, compare; and once over stdin and stdout, as agents start the server."""
    used = 0
    async with client_of(tmp_path) as client:
        for name, stride in (("before", "32"), ("after", "1")):
            text, failed = await call(
                client, "profile", command=[sys.executable, PROGRAM, stride], simulate=True, name=name
            )
            assert not failed, text
            assert text.startswith("exit status 0; trace ")
            assert ("uncoalesced" in text and "fill.cu:4" in text) == (name == "before")
            used += len(text)
        kernels, _ = await call(client, "list_kernels", trace="before")
        explained, _ = await call(client, "explain_kernel", kernel="fill", trace="before")
        lines, _ = await call(client, "expand", page="lines", kernel="fill", trace="before")
        compared, failed = await call(client, "compare", before="before", after="after")
    arguments = ["-m", "tui_probe", "mcp", "--root", str(tmp_path)]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ), cwd=tmp_path)
    async with Client(stdio_client(server)) as client:
        text, failed = await call(client, "profile", command=[sys.executable, PROGRAM, "1"], simulate=True, name="last")
        assert text.startswith("exit status 0; trace ")
        assert not failed
    assert "fill" in kernels
    assert "registers" in explained
    assert re.search(r"fill\.cu:4\b", lines)
    assert not failed
    assert re.search(r"fixed.*fill\.cu:4|fill\.cu:4.*fixed", compared), compared
    assert used + sum(map(len, (kernels, explained, lines, compared))) <= 24_000


async def test_places_outside_of_the_roots_are_refused(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to("/etc")
    async with client_of(inside) as client:
        for place in ("/etc", "..", str(tmp_path), "link"):
            text, failed = await call(client, "profile", command=["true"], directory=place)
            assert failed
            assert "outside of the allowed directories" in text
            text, failed = await call(client, "list_kernels", trace=f"{place}/x")
            assert failed
            assert "outside of the allowed directories" in text


@pytest.mark.usefixtures("natives_in_environment")
async def test_cancelling_profile_ends_the_program(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        command = [sys.executable, "-c", SLEEPS]
        task = asyncio.create_task(call(client, "profile", command=command, simulate=True))
        pid = await file_with(tmp_path / "pid")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.02)


@pytest.mark.usefixtures("natives_in_environment")
async def test_program_is_ended_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def until_it_runs(*_: object) -> bool:
        await file_with(tmp_path / "pid")
        return False

    monkeypatch.setattr(child_process, "_wait_for_end", until_it_runs)
    async with client_of(tmp_path) as client:
        with monkeypatch.context() as only_profile:
            only_profile.setattr("tui_probe.integrations.mcp_server.Tools._run_command", brief)
            text, failed = await call(client, "profile", command=[sys.executable, "-c", STORES], simulate=True)
    assert not failed, text
    assert re.fullmatch(r"the program was ended at its time limit of 600 s; trace \S+\n\nbrief", text)


async def brief(*_: object) -> str:
    return "brief"


async def test_capabilities_fit_in_1000_characters(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        text, failed = await call(client, "capabilities")
    assert not failed
    assert len(text) <= 1000
    assert json.loads(text)["roots"] == [str(tmp_path.resolve())]


async def test_output_of_commands_has_no_control_characters(tmp_path: Path) -> None:
    done = await run_tui_probe(["show", "lines", "no\x1b[31mtrace"], tmp_path, limit=60)
    assert done.status != 0
    assert "trace" in done.messages
    assert done.messages.replace("\n", "").isprintable()


@pytest.mark.parametrize("max_chars", [300, 2000])
def test_messages_of_a_failed_program_leave_room_for_the_brief(tmp_path: Path, max_chars: int) -> None:
    from tui_probe.integrations.mcp_server import outcome_text

    (tmp_path / "stderr.log").write_text("\x1b[31mline\n" * 1000 + "RuntimeError: no\n")
    text = outcome_text(CommandResult(1, "", ""), 600, tmp_path, max_chars)
    assert text.startswith(f"exit status 1; trace {tmp_path}\n")
    assert text.endswith("RuntimeError: no\n\n")
    assert len(text) <= max_chars + 1
    assert text.replace("\n", "").isprintable()


@pytest.mark.usefixtures("natives_in_environment")
async def test_profile_reads_what_a_shell_starts_and_names_other_processes(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        script = f"{sys.executable} {PROGRAM} 1; {sys.executable} {PROGRAM} 32; exit $?"
        text, failed = await call(client, "profile", command=["sh", "-c", script], simulate=True)
        assert not failed, text
        assert re.match(r"exit status 0; trace \S+\n\n1 other processes launched kernels; .* trace is \S+\n\n", text)
        text, failed = await call(client, "profile", command=["sh", "-c", "exit 3"], simulate=True)
    assert failed
    assert text.endswith("nothing was profiled (exit status 3): the program launched no kernel")


async def test_reason_of_a_page_without_data_comes_before_the_list_of_pages(tmp_path: Path) -> None:
    """A list of pages is longer than what the result has of messages."""
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "event.log").write_text(
        "[init] pid 1\n[kernel] 0 skipped registers 8 local 0 shared 0 blocks 16 name fill reason no PTX code no-ptx\n"
    )
    async with client_of(tmp_path) as client:
        text, failed = await call(client, "source", kernel="fill", trace="trace")
    assert failed
    assert "page source of #0 fill has no data" in text.splitlines()[0]


def test_traces_of_other_directories_are_not_those_of_a_run(tmp_path: Path) -> None:
    """A program may print such a line itself."""
    for name in ("own/1", "own/2", "other/3"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "event.log").touch()
    announced = [tmp_path / "own" / "shell", *(tmp_path / name for name in ("own/1", "own/2", "other/3"))]
    lines = [*(f"[info] trace in {path}" for path in announced), "why"]
    assert announced_traces("\n".join(lines)) == ((tmp_path / "own/1", tmp_path / "own/2"), "why")


async def test_modules_of_the_working_directory_are_not_imported(tmp_path: Path) -> None:
    for name in ("random", "rich", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('of the directory')\n")
    done = await run_tui_probe(["list", "--format", "json"], tmp_path, limit=60, traces=tmp_path)
    assert done.status == 0, done.messages
    assert json.loads(done.output)


async def file_with(path: Path) -> str:
    """Wait for a file with text."""
    end = time.monotonic() + HANG
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
    return path.read_text()
