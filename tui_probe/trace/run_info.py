"""``run.json``: how a trace came to be, as the launcher wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tui_probe.input_limits import RUN_JSON
from tui_probe.json_data import parse_json
from tui_probe.trace.plain_file import read_within

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The launcher's record of a run; what it does not say, or says in another type, is None.

    ``started`` and ``ended`` are seconds since 1970. ``ended`` is None while the run lasts. ``pid`` is the process of
    the command, whose ``exit_status`` or ``signal`` it is; other processes of the run have the same record.
    """

    command: tuple[str, ...] = ()
    pid: int | None = None
    cwd: str | None = None
    started: float | None = None
    ended: float | None = None
    exit_status: int | None = None
    signal: int | None = None
    probe: str | None = None
    probes: tuple[str, ...] = ()
    """The names of all, in their order; empty in older records."""
    options: dict[str, Any] = field(default_factory=dict)
    driver: str | None = None
    simulated: bool = False
    ptxas: str | None = None
    processes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    """What the launcher could not do, the failure of the engine first."""

    def is_of(self, pid: int | None) -> bool:
        """Does it tell how this process ended? Older records do not say whose end they tell."""
        return self.pid is None or self.pid == pid


def read_run_info(path: Path) -> RunInfo | None:
    """Read ``run.json``; None where there is none, or where it is not JSON."""
    try:
        data = parse_json(read_within(path, RUN_JSON))
    except (OSError, ValueError, RecursionError):
        return None
    return parse_run_info(data) if isinstance(data, dict) else None


def parse_run_info(data: dict[str, Any]) -> RunInfo:
    """The record from JSON. Values of an unexpected type count as absent."""
    driver, toolchain = (_dict(data.get(key)) for key in ("driver", "toolchain"))
    return RunInfo(
        command=_texts(data.get("command")),
        pid=_integer(data.get("pid")),
        cwd=_text(data.get("cwd")),
        started=_time(data.get("started")),
        ended=_time(data.get("ended")),
        exit_status=_integer(data.get("exit_status")),
        signal=_integer(data.get("signal")),
        probe=_text(data.get("probe")),
        probes=tuple(name for each in _list(data.get("probes")) if (name := _text(_dict(each).get("name")))),
        options=_dict(data.get("options")),
        driver=_text(driver.get("path")),
        simulated=driver.get("simulated") is True,
        ptxas=_text(toolchain.get("version")) or _text(toolchain.get("ptxas")),
        processes=_texts(data.get("processes")),
        messages=tuple(filter(None, [_text(data.get("engine_failure"))])) + _texts(data.get("messages")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _time(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
