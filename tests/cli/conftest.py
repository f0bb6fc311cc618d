"""Runs of the command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG

ROOT = Path(__file__).resolve().parents[2]

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """``command("doctor", environment={...})`` runs ``tui-probe doctor`` in an empty folder, without a terminal."""

    def run(*words: str, environment: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        settings = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": HANG} | options
        path = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
        variables = os.environ | {"PYTHONPATH": path, "COLUMNS": "100"} | (environment or {})
        program = [sys.executable, "-m", "tui_probe", *words]
        return subprocess.run(program, cwd=tmp_path, env=variables, start_new_session=True, **settings)

    return run
