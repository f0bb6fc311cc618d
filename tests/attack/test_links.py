"""No one makes the tool write into files of the user's, by links in a trace or in the folder of traces."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.launcher.conftest import Runner
from tests.launcher.conftest import fake_native as fake_native
from tests.launcher.conftest import script as script
from tests.launcher.conftest import tool as tool
from tui_probe.engine.source_copies import SourceCopies
from tui_probe.engine.whole_files import APPENDED_FILE, NEW_FILE, open_file
from tui_probe.launcher.run_traces import add_message, write_record
from tui_probe.launcher.spool import root_problem
from tui_probe.trace.source_lines import SOURCE_FOLDER, copy_name
from tui_probe.trace.trace_directory import TraceDirectory

PLANT = """
import os, pathlib
victims = pathlib.Path("victims").absolute()
(trace,) = pathlib.Path("trace").glob("*_*_*")
for name in {names}:
    (trace / name).unlink(missing_ok=True)
    (trace / name).symlink_to(victims / name)
kernel = trace / "kernel" / "0_x"
kernel.mkdir(parents=True)
(kernel / "kernel.info").touch()
(kernel / "process.log").symlink_to(victims / "process.log")
"""
Script = Callable[[str], list[str]]
NAMES = ("run.json", ".run.json.tmp", "read.py", ".read.py.tmp", "stdout.log", "stderr.log")


@pytest.fixture
def launching(tool: Runner) -> Runner:
    """The tool with targets that leave a trace directory."""
    tool.environment["FAKE_LAUNCHES"] = "*"
    return tool


@pytest.mark.parametrize("there", [True, False])
def test_links_in_a_trace_are_not_followed(launching: Runner, script: Script, there: bool) -> None:
    """Neither to files that are there nor to such as would be made."""
    victims = launching.folder / "victims"
    victims.mkdir()
    for name in (*NAMES, "process.log") if there else ():
        (victims / name).write_text("precious")
    result = launching.run(script(PLANT.format(names=NAMES) + "print('said')"))
    assert result.returncode == 0
    texts = {path.name: path.read_text() for path in victims.iterdir()}
    assert texts == (dict.fromkeys((*NAMES, "process.log"), "precious") if there else {})
    (trace,) = (launching.folder / "trace").glob("*_*_*")
    assert (trace / "run.json").is_file()
    assert not (trace / "run.json").is_symlink()


def test_a_root_that_all_may_write_to_is_refused(launching: Runner, script: Script) -> None:
    root = launching.folder / "trace"
    root.mkdir()
    root.chmod(0o777)
    result = launching.run(script("open('ran', 'w')"))
    assert result.returncode != 0
    assert b"all users may write to the directory" in result.stderr
    assert b"--tracedir" in result.stderr
    assert not (launching.folder / "ran").exists()
    root.chmod(0o1777)
    assert launching.run(script("open('ran', 'w')")).returncode == 0


@pytest.mark.parametrize(
    ("owner", "mode", "refused"),
    [
        (1000, 0o755, False),
        (1000, 0o775, False),
        (0, 0o1777, False),
        (1001, 0o700, True),
        (1001, 0o1777, True),
        (1000, 0o777, True),
        (0, 0o777, True),
    ],
)
def test_roots_that_are_refused(owner: int, mode: int, refused: bool) -> None:
    status = os.stat_result((stat.S_IFDIR | mode, 1, 1, 1, owner, owner, 0, 0, 0, 0))
    assert (root_problem(status, 1000) is not None) == refused


def test_trace_replaced_by_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "run.json").write_text("{}")
    link = tmp_path / "trace"
    link.symlink_to(elsewhere)
    for write in (lambda: write_record(link, {"a": 1}), lambda: add_message(link, "words")):
        with pytest.raises(OSError, match=r"Not a directory|symbolic"):
            write()
    assert (elsewhere / "run.json").read_text() == "{}"


def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(OSError, match="not a regular file"):
        add_message(tmp_path, "words")
    with TraceDirectory(tmp_path) as folder, pytest.raises(OSError):  # noqa: PT011
        folder.append("run.json", b"more")


def test_the_engine_follows_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "process.log").symlink_to(victim)
    for how in (NEW_FILE, APPENDED_FILE):
        with pytest.raises(OSError, match="symbolic"):
            open_file(tmp_path / "process.log", how)
    assert victim.read_text() == "precious"


def test_copies_of_sources_follow_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, elsewhere, program = tmp_path / "trace", tmp_path / "elsewhere", tmp_path / "program.py"
    kernel = trace / "kernel" / "0_x"
    kernel.mkdir(parents=True)
    elsewhere.mkdir()
    program.write_text("print()\n")
    (kernel / "pruned.ptx").write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.loc 1 1 1\nret;\n}\n"
        f'.file 1 "{program}"\n'
    )
    monkeypatch.chdir(tmp_path)
    (trace / SOURCE_FOLDER).symlink_to(elsewhere)
    SourceCopies().add(kernel)
    assert not list(elsewhere.iterdir())
    (trace / SOURCE_FOLDER).unlink()
    SourceCopies().add(kernel)
    assert (trace / SOURCE_FOLDER / copy_name(str(program))).read_text() == "print()\n"
