"""Questions to a library are asked in another process: a broken driver then takes only that one down."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tui_probe.own_python import own_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

LIMIT = 60  # seconds; a driver may take ten to wake many GPUs


def ask(program: str, *arguments: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a Python program that prints a JSON object; ``{"error": why}`` where it does not."""
    command = [sys.executable, "-P", "-c", program, *arguments]
    try:
        result = subprocess.run(
            command, env=own_environment() | dict(environment or {}), capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {LIMIT} s"}
    if result.returncode < 0:
        return {"error": f"it crashed ({signal.Signals(-result.returncode).name})"}
    try:
        answer = json.loads(result.stdout)
    except ValueError:
        return {"error": (result.stderr.strip().splitlines() or ["no answer"])[-1]}
    return answer if isinstance(answer, dict) else {"error": "no answer"}
