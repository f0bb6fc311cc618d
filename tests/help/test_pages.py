"""Help pages match the program: their examples are read, parsed and compiled."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import socket
import tomllib
from pathlib import Path

import pytest

from tests.dsl.running import COUNT, run_saxpy
from tests.help.pages import NAMES, blocks
from tests.recorded import DATA, SIMULATED
from tui_probe.cli.main import build_parsers
from tui_probe.cli.parser import COMMANDS
from tui_probe.draw.spans import to_ascii
from tui_probe.engine.kernel_cache import PrepareOptions
from tui_probe.engine.server import EngineServer
from tui_probe.help import document, topics
from tui_probe.probe_files.loading import load_probe, read_probe
from tui_probe.probe_model.probe import Level
from tui_probe.ptx.instruction_facts import CLASSES
from tui_probe.schemas import read_schema
from tui_probe.settings import read_settings
from tui_probe.simgpu.executor.model import COPY_BYTES_PER_CYCLE, COPY_LATENCY, COSTS, TRY_WAIT_CYCLES, Machine
from tui_probe.simgpu.protocol import REQUESTS, Status
from tui_probe.trace.event_types import Unknown
from tui_probe.trace.events import READERS, parse_line
from tui_probe.trace.kernel_files import parse_kernel_info
from tui_probe.trace.run_info import parse_run_info
from tui_probe.ui import keys
from tui_probe.ui.help_text import help_page


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_a_title_and_reads_on_any_terminal(name: str) -> None:
    page = help_page(name)
    assert page.startswith("# ")
    assert "{{" not in page
    strange = {sign for sign in page if not sign.isascii() and to_ascii(sign) == "?"}
    assert strange == set()


def test_every_topic_says_what_it_is_about_in_one_line() -> None:
    for topic in topics():
        assert topic.summary
        assert len(topic.name) + len(topic.summary) <= 76, topic


@pytest.mark.parametrize("name", NAMES)
def test_commands_on_the_pages_can_be_given(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(name, "console"):
        for line in block.splitlines():
            argv = shlex.split(line.removeprefix("$ "))
            if argv[0] == "tui-probe":
                build_parsers(argv[1])[0].parse_args(argv[1:])  # which exits for what it does not know
    assert capsys.readouterr().err == ""
    for command, rest in re.findall(r"`tui-probe ([a-z-]+)([^`]*)`", help_page(name)):
        assert command in COMMANDS, rest
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in options_of(command), f"{command} {option}"


def options_of(command: str) -> str:
    parser, _ = build_parsers(command)
    commands = next(action for action in parser._actions if action.dest == "command_name")
    return " ".join(commands.choices[command]._option_string_actions)  # type: ignore[index]


@pytest.mark.parametrize("name", NAMES)
def test_options_of_run_exist(name: str) -> None:
    known = options_of("run")
    for option in re.findall(r"`run (--[a-z-]+)", help_page(name)):
        assert option in known


def test_topics_that_pages_lead_to_exist() -> None:
    for name in NAMES:
        for topic in re.findall(r"tui-probe help ([a-z-]+)", help_page(name)):
            assert topic in NAMES, name


def test_every_line_of_the_event_log_page_is_read() -> None:
    for block in blocks("event-log", "text"):
        for line in block.splitlines():
            assert not isinstance(parse_line(line.encode()), Unknown), line


def test_every_tag_of_the_log_is_explained() -> None:
    page = help_page("event-log")
    for tag in READERS:
        assert tag.decode() in page, tag


def test_the_example_of_kernel_info_is_a_recorded_one() -> None:
    (block,) = blocks("kernel-info", "text")
    recorded = next((SIMULATED / "dmat" / "kernel").glob("*/kernel.info")).read_text()
    assert block == recorded
    info = parse_kernel_info(block.splitlines())
    assert (info.parameters, [counts.size for counts in info.maps]) == (3, [24, -1, 4])


def test_run_json_lists_every_key() -> None:
    page = help_page("run-json")
    example = json.loads(blocks("run-json", "json")[0])
    assert parse_run_info(example).cwd == "/home/ada/demo"
    listed = set(re.findall(r"`(\w+)`", "\n".join(line for line in page.splitlines() if line.startswith("|"))))
    paths = [*DATA.glob("*/*/run.json")]
    assert paths
    for path in paths:
        record = json.loads(path.read_text())
        assert set(record) <= set(example)
        assert set(record) | set(record["options"]) | set(record["driver"]) <= listed


def test_json_page_shows_a_finding_of_the_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="a test dependency: pip install -e '.[dev]'")
    (example,) = blocks("json", "json")
    schema = read_schema("finding")
    jsonschema.validate(json.loads(example), schema)
    assert set(json.loads(example)) == set(schema["properties"])
    page = help_page("json")
    assert all(
        f"`{word}`" in page for field in ("severity", "confidence") for word in schema["properties"][field]["enum"]
    )


def test_the_engine_answers_as_the_page_says(tmp_path: Path) -> None:
    """The example of the page, with a kernel's folder of a real one."""
    folder = tmp_path / "kernel"
    folder.mkdir()
    (folder / "original.bin").write_bytes((DATA / "ptx" / "numba_saxpy.sm_80.ptx").read_bytes())
    name = re.search(r"\.entry (\w+)", (folder / "original.bin").read_text())
    assert name is not None
    lines = [line.partition("> ")[2] or line.partition("< ")[2] for line in blocks("sockets", "text")[0].splitlines()]
    hello, welcome, prepare, answer = (line.replace("|", "\t") for line in lines)
    prepare = prepare.replace("/tmp/trace/kernel/0_29cd7e", str(folder)).replace("zero_fill", name[1])
    with EngineServer(tmp_path / "socket", load_probe("block_sched"), PrepareOptions("ptx")):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(tmp_path / "socket"))
        with connection, connection.makefile("rw") as file:
            for request, expected in ((hello, welcome), (prepare, answer)):
                file.write(request + "\n")
                file.flush()
                assert file.readline() == expected + "\n"
    assert (folder / "kernel.info").is_file()
    assert (folder / "process.log").is_file()


def test_all_requests_to_the_engine_are_listed() -> None:
    table = help_page("sockets").split("| Request | Fields | Answer |\n")[1].split("\n\n")[0]
    answered = re.findall(r'case \["(\w+)",', inspect.getsource(EngineServer))
    assert answered
    assert sorted(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == sorted(answered)


def test_the_simulated_gpus_protocol_is_listed() -> None:
    page = help_page("sockets")
    for kind, request in REQUESTS.items():
        assert f"| {kind} | `{request.__name__.removesuffix('Request').upper()}` |" in page
    for status in Status:
        assert f"| {status.value} | `{status.name}` |" in page


def test_the_model_of_time_is_that_of_the_code() -> None:
    cells = re.findall(r"^\| (.*) \| (\d+) \|$", help_page("simulated-gpu"), re.MULTILINE)
    measured = sorted(int(cycles) for words, cycles in cells if "SIM" not in words)
    assert measured == sorted(COSTS.values())
    machine = Machine()
    asynchronous = (COPY_LATENCY, COPY_BYTES_PER_CYCLE, TRY_WAIT_CYCLES)
    of_blocks = (machine.max_blocks_per_sm, machine.max_threads_per_sm, machine.block_launch_cycles)
    for number in (*of_blocks, *asynchronous):
        assert re.search(rf"\b{number}\b", help_page("simulated-gpu"))
    assert f"{machine.sm_count} SMs" in help_page("simulated-gpu")


def test_the_probes_of_the_language_page_are_probes() -> None:
    first, reduced, other = (read_probe(text.encode(), Path("page.toml")) for text in blocks("probe-language", "toml"))
    python = read_probe(blocks("probe-language", "python")[0].encode(), Path("page.py"))
    assert first.maps[0].fields == python.maps[0].fields
    assert first.maps[0].level is python.maps[0].level is Level.WARP
    for probe in (first, python):
        sums = run_saxpy(probe).records["loads"]
        assert (sums["executed"].sum(), sums["loaded"].sum()) == (2 * COUNT, 8 * COUNT)
    assert reduced.maps[0].reduction is not None
    assert [field.to.name for field in reduced.maps[0].reduction.fields] == ["start", "latest", "smid"]
    assert (other.maps[0].cap, [field.name for field in other.maps[0].fields]) == (128, ["now", "addr"])


def test_the_language_page_lists_all_classes() -> None:
    page = help_page("probe-language")
    assert all(f"`{name}`" in page for name in CLASSES)


def test_the_example_of_the_settings_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(blocks("settings", "toml")[0])
    settings = read_settings(path)
    assert settings.problems == ()
    assert settings.probe == "gmem_sectors"
    try:
        assert keys.remap(settings.keys) == []
    finally:
        keys.remap({})
    assert tomllib.loads(path.read_text())["palette"] == "light"


def test_the_glossary_is_in_order_and_explains_its_own_words() -> None:
    page = help_page("glossary")
    terms = re.findall(r"^\*\*(.+?)\*\*: ", page, re.MULTILINE)
    assert terms == sorted(terms, key=str.lower)
    entries = document.glossary_entries(page)
    for text in entries.values():
        assert 1 <= len(re.findall(r"[.!](?= |\n|$)", text)) <= 4, text
        for other in re.findall(r": See ([a-z ]+)\.", text):
            assert other in entries
    for status in ("probed", "skipped", "failed", "excluded", "pending"):
        assert f"`{status}`" in entries["status"]
