"""Formats and words of the past that are still read, each with its reason; what no trace here has is deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import tui_probe
from tests.recorded import DATA
from tui_probe.evals.evaluation import FOLDER
from tui_probe.reasons import listed_reasons
from tui_probe.trace.locate import LOG

ROOT: Final = Path(tui_probe.__file__).parents[1]
STORED: Final = sorted(log.parent for top in (DATA, FOLDER / "traces") for log in top.rglob(LOG))
"""Recorded traces: those of an H200 are never recorded again."""
EXISTING_SYSTEM: Final = "written by the existing system, whose traces and probes must stay readable"
OTHER_TOOLS: Final = "written by older versions of NVIDIA's tools"
MENTION: Final = re.compile(r"\b[Oo]lder (systems?|versions?|logs?|records?|files?|dialects?|names)\b")


@dataclass(frozen=True)
class Compatibility:
    """A form of the past. ``modules`` read it and say so; ``stored`` tells whether a recorded trace has it."""

    form: str
    modules: tuple[str, ...]
    reason: str = "recorded traces have it"
    stored: Callable[[Path], bool] | None = None


def run_json_lacks(key: str) -> Callable[[Path], bool]:
    def has_no_key(trace: Path) -> bool:
        path = trace / "run.json"
        return path.is_file() and key not in json.loads(path.read_text())

    return has_no_key


def has_options_without_limits(trace: Path) -> bool:
    path = trace / "run.json"
    return path.is_file() and "max_log_bytes" not in json.loads(path.read_text()).get("options", {})


def has_kernel_without_sites(trace: Path) -> bool:
    return any(not path.with_name("sites.json").exists() for path in trace.glob("kernel/*/pruned.ptx"))


def has_kernel_without_mode(trace: Path) -> bool:
    return re.search(rb"^\[kernel\] \d+ probed-function (?!.* way ).*$", (trace / LOG).read_bytes(), re.M) is not None


def has_sectors_without_ideal(trace: Path) -> bool:
    path = trace / "probe.toml"
    text = path.read_text() if path.is_file() else ""
    return "gmem_sectors" in text and "ideal" not in text


def has_sectors_of_sass_without_bulk(trace: Path) -> bool:
    path = trace / "probe.toml"
    of_sectors = path.is_file() and "gmem_sectors" in path.read_text()
    return of_sectors and any(b"\nway graft" in info.read_bytes() for info in trace.glob("kernel/**/kernel.info"))


def has_reason_without_code(trace: Path) -> bool:
    return re.search(rb" reason (?!-$)(?!.* code [a-z-]+$).+$", (trace / LOG).read_bytes(), re.M) is not None


COMPATIBILITY: Final = (
    Compatibility("reason without code", ("tui_probe/reasons/__init__.py",), stored=has_reason_without_code),
    Compatibility("run.json without probes", ("tui_probe/trace/run_info.py",), stored=run_json_lacks("probes")),
    Compatibility("run.json without pid", ("tui_probe/trace/run_info.py",), stored=run_json_lacks("pid")),
    Compatibility(
        "options without limits", ("tui_probe/launcher/options.py",), stored=has_options_without_limits,
    ),
    Compatibility(
        "kernel without sites.json",
        ("tui_probe/trace/sites.py", "tui_probe/records/probed_sites.py"),
        stored=has_kernel_without_sites,
    ),
    Compatibility("kernel without mode", ("tui_probe/trace/kernel_status.py",), stored=has_kernel_without_mode),
    Compatibility(
        "sectors without ideal", ("probes/gmem_sectors/analysis.py",), stored=has_sectors_without_ideal
    ),
    Compatibility(
        "sectors in SASS without those of bulk copies",
        ("probes/gmem_sectors/__init__.py",),
        stored=has_sectors_of_sass_without_bulk,
    ),
    Compatibility(
        "launches and kernels without numbers",
        ("tui_probe/trace/reduce.py", "tui_probe/trace/run.py", "tui_probe/trace/kernel_status.py"),
        EXISTING_SYSTEM,
    ),
    Compatibility("[cmd] with bytes behind its text", ("tui_probe/trace/events.py",), EXISTING_SYSTEM),
    Compatibility("kernel.info with a bare callback", ("tui_probe/trace/kernel_files.py",), EXISTING_SYSTEM),
    Compatibility(
        "result sections with the size of the map",
        (
            "tui_probe/trace/result_file.py",
            "tui_probe/trace/results.py",
            "tui_probe/pages/views/explain.py",
            "tui_probe/api/results.py",
        ),
        EXISTING_SYSTEM,
    ),
    Compatibility("probe tables without a prefix", ("tui_probe/pages/views/probe.py",), EXISTING_SYSTEM),
    Compatibility(
        "ncu and nsys files with other columns and names",
        (
            "tui_probe/nsight/importers/ncu.py",
            "tui_probe/nsight/importers/ncu_table.py",
            "tui_probe/nsight/importers/formats.py",
        ),
        OTHER_TOOLS,
    ),
)  # fmt: skip


@pytest.mark.parametrize("entry", COMPATIBILITY, ids=lambda entry: entry.form)
def test_compatibility_has_a_recorded_trace_or_another_reason(entry: Compatibility) -> None:
    assert (entry.stored is None) == (entry.reason in (EXISTING_SYSTEM, OTHER_TOOLS))
    if entry.stored is not None:
        assert any(map(entry.stored, STORED)), "no recorded trace has it: delete what reads it"


def test_sources_mention_older_forms_only_where_listed() -> None:
    listed = {module for entry in COMPATIBILITY for module in entry.modules}
    sources = [path for top in ("tui_probe", "probes") for path in (ROOT / top).rglob("*.py")]
    mentioning = {str(path.relative_to(ROOT)) for path in sources if MENTION.search(path.read_text())}
    assert len(sources) > 400
    assert mentioning - listed == set()


def test_older_sentences_of_reasons_are_in_recorded_traces() -> None:
    """Without the output of the assembler, which the existing system has in process.log."""
    logs = b"\n".join((trace / LOG).read_bytes() for trace in STORED).decode("utf-8", "replace")
    patterns = {(listed.code, pattern) for listed in listed_reasons().values() for pattern in listed.older_patterns}
    assert len(patterns) > 5
    for code, pattern in patterns:
        assert code == "ptxas-refused" or re.search(rf" reason {pattern.pattern}$", logs, re.MULTILINE), code
