"""A cell and a function, profiled in a new process on the simulated GPU."""

from __future__ import annotations

import runpy
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import tui_probe
from tests.recorded import SIMULATED
from tui_probe.errors import ChoiceError, TraceError, UsageError

PROGRAM = Path(__file__).with_name("faulty.py")
OPTIONS = ("--sim", "-p", "gmem_sectors_by_line", "--name", "notebook")


class Shell:
    """The part of IPython that ``%load_ext`` calls."""

    def __init__(self) -> None:
        self.magics: dict[str, Any] = {}

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        assert kind == "cell"
        self.magics[name] = function


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, natives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUI_PROBE_NATIVE", str(natives))
    monkeypatch.setenv("PYTHONPATH", str(PROGRAM.parents[2]))


def test_cell_gives_its_trace(capfd: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    tui_probe.load_ipython_extension(shell)
    cell = f"import runpy, sys\nprint('from the cell')\nsys.argv[1:] = ['32']\nrunpy.run_path({str(PROGRAM)!r})"
    trace = shell.magics["tui_probe"]("--sim -p gmem_sectors_by_line --name notebook", cell)
    assert capfd.readouterr().out == "from the cell\n"
    (kernel,) = trace.kernels
    assert kernel.metrics()["store_sectors"].tolist() == [1024]
    assert "fill" in trace._repr_html_()


def store(stride: int) -> None:
    """Launch the kernel."""
    sys.argv = ["faulty.py", str(stride)]
    try:
        runpy.run_path(str(PROGRAM))
    except SystemExit as ended:
        assert ended.code == 0  # noqa: PT017 - in another process


def test_function_is_called_in_a_process_of_its_own() -> None:
    trace = tui_probe.profile(store, stride=1, options=OPTIONS)
    assert trace.kernels[0].metrics()["store_sectors"].tolist() == [128]


def test_function_of_a_script_is_called_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import pathlib, tui_probe\n"
        "def work(text):\n    pathlib.Path('written').write_text(text)\n"
        "if __name__ == '__main__':\n"
        "    try:\n        tui_probe.profile(work, 'once', options=['--sim'])\n"
        "    except tui_probe.TraceError as error:\n        print(error)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "written").read_text() == "once"


def test_lambda_and_wrong_option_are_refused() -> None:
    with pytest.raises(UsageError, match="cannot pass the call"):
        tui_probe.profile(lambda: None)
    with pytest.raises(TraceError, match="unknown option"):
        tui_probe.profile(print, options=("--no-such-option",))


def test_objects_of_a_trace_show_themselves() -> None:
    kernel = tui_probe.open(SIMULATED / "gmem_sectors").kernels[0]
    findings = kernel.findings()
    html = kernel._repr_html_()
    assert "<th>finding</th>" in findings._repr_html_()
    assert escape(findings[0].claim) in html
    assert findings[0].claim.split(":")[0] in repr(findings)
    page = tui_probe.view(kernel, "summary")
    ElementTree.fromstring(page._repr_svg_())
    assert "limited by" in str(page)
    assert page.to_dict()["view"] == "summary"
    with pytest.raises(ChoiceError, match=r"page dmat of .* has no data"):
        tui_probe.view(kernel, "dmat")
    with pytest.raises(UsageError, match="is a page of a whole trace"):
        tui_probe.view(kernel, "graphs")
