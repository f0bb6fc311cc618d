"""Blocks of the help pages that are marked ``gpu``: commands, and examples in Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.help.pages import NAMES, blocks
from tests.help.sessions import ROOT, add_programs, needed_tool, prepare, run_console

from .conftest import PROGRAMS, nvcc_program

CONSOLE = [(name, block) for name in NAMES for block in blocks(name, "console", gpu=True)]
PYTHON = [(name, block) for name in NAMES for block in blocks(name, "python", gpu=True)]
BEFORE = {
    "tensors": """import torch
q = k = v = torch.randn(1, 4, 64, 64, device="cuda")
attention = torch.nn.functional.scaled_dot_product_attention
""",
    "result-file": "import os\nos.chdir('trace')\nimport sys\nsys.path.insert(0, '')\n",
}
"""Files that an example uses and the page does not show."""


@pytest.fixture
def session(tmp_path: Path) -> Path:
    prepare(tmp_path)
    add_programs(tmp_path)
    return tmp_path


@pytest.fixture
def recorded(session: Path) -> Path:
    """The directory with a real trace in ``trace``, whose result has the name on the page."""
    shutil.rmtree(session / "trace")
    run_console("$ tui-probe run --no-ui --detail -p block_sched --tracedir made -- python train.py\n", session)
    (made,) = (session / "made").iterdir()
    made.rename(session / "trace")
    next((session / "trace" / "result").iterdir()).rename(session / "trace" / "result" / "2.394620.bin")
    return session


@pytest.mark.parametrize(("topic", "block"), CONSOLE, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CONSOLE)])
def test_commands_of_page_run(topic: str, block: str, session: Path, request: pytest.FixtureRequest) -> None:
    if tool := needed_tool(block):
        pytest.skip(f"no {tool} on this machine")
    if topic == "result-file":
        request.getfixturevalue("recorded")
    if topic == "stalls":  # waits are measured in SASS, which the usual program does not have
        nvcc_program(PROGRAMS / "three_kernels.cu", session / "a.out", "-arch=sm_90", "-lineinfo")
    run_console(block.replace("/workspace", str(session)).replace("/opt/env/bin/python", sys.executable), session)


@pytest.mark.parametrize(("topic", "block"), PYTHON, ids=[name for name, _ in PYTHON])
def test_python_of_page_runs(topic: str, block: str, session: Path, request: pytest.FixtureRequest) -> None:
    if topic == "tensors":
        pytest.importorskip("torch", reason="the example uses PyTorch")
    if topic == "result-file":
        request.getfixturevalue("recorded")
    (session / "example.py").write_text(BEFORE.get(topic, "") + block)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "example.py"], cwd=session, env=environment, capture_output=True, text=True,
                           timeout=300)  # fmt: skip
    assert ended.returncode == 0, ended.stderr
