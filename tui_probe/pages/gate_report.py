"""The verdicts of a gate as text, Markdown for a pull request, JSON, JUnit XML and SARIF."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from tui_probe.draw.printable import dump_json, printable
from tui_probe.draw.table import Column, as_markdown, table
from tui_probe.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tui_probe.verdicts.gate import Clocks, Judgement

SCHEMA: Final = "tui-probe gate"
VERSION: Final = 1
_SEVERITY_ORDER: Final = ("worse", "changed", "cannot tell", "better", "same")
_PLACE: Final = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+)\b")
_WIDTH: Final = 140

COLUMNS: Final[Sequence[Column[Judgement]]] = (
    Column("verdict", lambda judged: judged.verdict, "verdict", lambda judged: judged.verdict, right=False),
    Column("kernel", lambda judged: judged.kernel, "kernel", lambda judged: judged.kernel, right=False, narrow=24),
    Column("metric", lambda judged: judged.metric),
    Column("label", lambda judged: judged.label, "metric", lambda judged: judged.label, right=False),
    Column("before", lambda judged: judged.baseline, "baseline", lambda judged: judged.baseline),
    Column("after", lambda judged: judged.candidate, "now", lambda judged: judged.candidate),
    Column(
        "why",
        lambda judged: judged.reason or judged.place,
        "note",
        lambda judged: judged.reason or judged.place,
        right=False,
        rank=1,
    ),
)


def by_severity(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Return what is worse first; metrics that are the same last."""
    return sorted(judgements, key=lambda judgement: _SEVERITY_ORDER.index(judgement.verdict))


def summary(judgements: Sequence[Judgement]) -> str:
    """Return the numbers of verdicts: ``1 worse, 12 same``."""
    counts = {verdict: sum(judgement.verdict == verdict for judgement in judgements) for verdict in _SEVERITY_ORDER}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "nothing was compared"


def gate_lines(judgements: Sequence[Judgement], width: int = _WIDTH) -> list[str]:
    """Return the report as text: all verdicts but ``same``."""
    differing = [judgement for judgement in by_severity(judgements) if judgement.verdict != "same"]
    return [summary(judgements), *(["", *table(COLUMNS, differing, width)] if differing else [])]


def clock_lines(clocks: Mapping[str, Clocks | str], tolerance: float) -> list[str]:
    """Return a line per program with its clocks, or why they are unknown, and a warning if their medians differ."""
    lines = [
        f"SM clock, {program}: {program_clocks if isinstance(program_clocks, str) else program_clocks.text}"
        for program, program_clocks in clocks.items()
    ]
    medians = [measured.median for measured in clocks.values() if not isinstance(measured, str)]
    if len(medians) > 1 and max(medians) > min(medians) * (1 + tolerance):
        share = max(medians) / min(medians) - 1
        lines.append(f"The clocks differ by {share:.1%}: lock them with nvidia-smi --lock-gpu-clocks, and run again.")
    return ["", *lines] if lines else []


def clocks_json(clocks: Clocks | str) -> dict[str, Any]:
    """Return clocks (MHz) and shares of samples as JSON, or why they are unknown."""
    return {"not_measured": clocks} if isinstance(clocks, str) else asdict(clocks)


def gate_markdown(judgements: Sequence[Judgement], name: str) -> str:
    """Return the report for a pull request."""
    differing = [judgement for judgement in by_severity(judgements) if judgement.verdict != "same"]
    rows = "\n".join(["", *as_markdown(COLUMNS, differing)]) if differing else ""
    return f"### tui-probe gate: {printable(name)}\n\n{summary(judgements)}\n{rows}\n"


def gate_json(judgements: Sequence[Judgement], name: str, head: dict[str, Any]) -> str:
    """Return all verdicts as JSON."""
    rows = [
        {
            "kernel": judgement.kernel, "metric": judgement.metric,
            "before": judgement.baseline, "after": judgement.candidate,
            "verdict": judgement.verdict, "why": judgement.reason, "place": judgement.place,
        }
        for judgement in by_severity(judgements)
    ]  # fmt: skip
    return dump_json({"schema": SCHEMA, "version": VERSION, "name": name, **head, "verdicts": rows}, indent=1)


def gate_junit(judgements: Sequence[Judgement], name: str) -> str:
    """Return JUnit XML: a test case per metric; what is worse fails, what has no verdict is skipped."""
    suite = ElementTree.Element("testsuite", name=printable(name), tests=str(len(judgements)))
    suite.set("failures", str(sum(judgement.verdict == "worse" for judgement in judgements)))
    suite.set("skipped", str(sum(judged.verdict == "cannot tell" for judged in judgements)))
    for judged in judgements:
        case = ElementTree.SubElement(suite, "testcase", classname=printable(judged.kernel), name=judged.metric)
        text = printable(
            f"{judged.label}: {judged.baseline} -> {judged.candidate} {judged.reason} {judged.place}".rstrip()
        )
        if judged.verdict == "worse":
            ElementTree.SubElement(case, "failure", message=text)
        elif judged.verdict == "cannot tell":
            ElementTree.SubElement(case, "skipped", message=text)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def gate_sarif(judgements: Sequence[Judgement]) -> str:
    """Return SARIF 2.1.0: a result per metric that is worse, at the worst line of its kernel."""
    results = [_sarif_result(judgement) for judgement in judgements if judgement.verdict == "worse"]
    rules = [{"id": metric} for metric in dict.fromkeys(result["ruleId"] for result in results)]
    driver = {"name": "tui-probe", "version": __version__, "rules": rules}
    sarif_run = {"tool": {"driver": driver}, "results": results}
    return dump_json(
        {"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": [sarif_run]}, indent=1
    )


def _sarif_result(judgement: Judgement) -> dict[str, Any]:
    message = f"{judgement.kernel}: {judgement.label} {judgement.baseline} -> {judgement.candidate}"
    result: dict[str, Any] = {"ruleId": judgement.metric, "level": "error", "message": {"text": printable(message)}}
    if place := _PLACE.search(judgement.place):
        location = {"artifactLocation": {"uri": place["file"]}, "region": {"startLine": int(place["line"])}}
        result["locations"] = [{"physicalLocation": location}]
    return result
