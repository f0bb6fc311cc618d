"""Starting the screen: what is imported, and where it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANG
from tests.ui.conftest import on_stage
from tests.ui.synthetic import example
from tests.ui.terminal import ROOT
from tui_probe import ui
from tui_probe.cli.arguments import trace_folder_of
from tui_probe.cli.open import newest_trace_notice
from tui_probe.errors import LaunchError
from tui_probe.trace.locate import Address
from tui_probe.ui.session import Session


def run_python(code: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=HANG, **options
    )


def test_textual_is_imported_only_for_a_screen() -> None:
    code = (
        "import sys, tui_probe.ui, tui_probe.ui.live.feed;"
        " print([name for name in sys.modules if name.startswith(('textual', 'pynvml'))])"
    )
    assert run_python(code).stdout == "[]\n"


def test_markdown_is_imported_only_for_a_page_of_help() -> None:
    assert run_python("import sys, tui_probe.ui.app; print('rich.markdown' in sys.modules)").stdout == "False\n"


def test_first_frame_needs_neither_numpy_nor_readers() -> None:
    later = {"numpy", "tui_probe.trace.follow", "tui_probe.verdicts.findings", "tui_probe.probe_files.loading"}
    code = f"import sys, tui_probe.cli.main, tui_probe.cli.open, tui_probe.ui.app; print({later} & sys.modules.keys())"
    assert run_python(code).stdout == "set()\n"


def test_without_a_terminal_it_refuses_at_once_and_names_the_other_way() -> None:
    with pytest.raises(LaunchError, match=r"is not a terminal; without a terminal use: tui-probe run --no-ui"):
        ui.run(Session(traces=(Path("trace"),)), alternative="tui-probe run --no-ui")


def test_in_a_process_without_a_terminal_nothing_hangs_and_nothing_is_drawn() -> None:
    code = (
        "import sys, tui_probe.ui as ui\n"
        "from tui_probe.ui.session import Session\n"
        "try: ui.run(Session())\n"
        "except ui.LaunchError as error: print(error); sys.exit(2)\n"
    )
    done = run_python(code, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "stdin is not a terminal" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_a_crash_is_reported_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tui_probe.ui.app import report_crash

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        raise RuntimeError("what went wrong")
    except RuntimeError as error:
        report_crash(error)
    (report,) = tmp_path.glob("tui-probe-crash-*.txt")
    assert "Traceback" in report.read_text()
    errors = capsys.readouterr().err
    assert "RuntimeError: what went wrong" in errors
    assert str(report) in errors


async def test_notice_names_opened_trace_of_folder(tmp_path: Path) -> None:
    for name in ("first", "second"):
        example(tmp_path / name)
    newest = trace_folder_of(Address(tmp_path))
    notice = newest_trace_notice(tmp_path, newest)
    assert notice.startswith(f"{newest.name} is the newest of 2 traces in {tmp_path};")
    assert newest_trace_notice(newest, newest) == newest_trace_notice(newest / "event.log", newest) == ""
    session = Session(traces=(newest,), notice=notice)
    async with on_stage(session, (300, 40)) as stage:
        await stage.refresh()
        assert notice in stage.text
