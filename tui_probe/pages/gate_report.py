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
_ORDER: Final = ("worse", "changed", "cannot tell", "better", "same")
_PLACE: Final = re.compile(r"(?P<file>[^\s:]+):(?P<line>\d+)\b")
_WIDTH: Final = 140

COLUMNS: Final[Sequence[Column[Judgement]]] = (
    Column("verdict", lambda judged: judged.verdict, "verdict", lambda judged: judged.verdict, right=False),
    Column("kernel", lambda judged: judged.kernel, "kernel", lambda judged: judged.kernel, right=False, narrow=24),
    Column("metric", lambda judged: judged.metric),
    Column("label", lambda judged: judged.label, "metric", lambda judged: judged.label, right=False),
    Column("before", lambda judged: judged.before, "baseline", lambda judged: judged.before),
    Column("after", lambda judged: judged.after, "now", lambda judged: judged.after),
    Column(
        "why",
        lambda judged: judged.why or judged.place,
        "note",
        lambda judged: judged.why or judged.place,
        right=False,
        rank=1,
    ),
)


def by_severity(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Return what is worse first; metrics that are the same last."""
    return sorted(judgements, key=lambda judged: _ORDER.index(judged.verdict))


def summary(judgements: Sequence[Judgement]) -> str:
    """Return the numbers of verdicts: ``1 worse, 12 same``."""
    counts = {verdict: sum(judged.verdict == verdict for judged in judgements) for verdict in _ORDER}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "nothing was compared"


def gate_lines(judgements: Sequence[Judgement], width: int = _WIDTH) -> list[str]:
    """Return the report as text: all verdicts but ``same``."""
    shown = [judged for judged in by_severity(judgements) if judged.verdict != "same"]
    return [summary(judgements), *(["", *table(COLUMNS, shown, width)] if shown else [])]


def clock_lines(clocks: Mapping[str, Clocks | str], within: float) -> list[str]:
    """Return a line per program with its clocks, or why they are unknown, and a warning if their medians differ."""
    lines = [
        f"SM clock, {program}: {measured if isinstance(measured, str) else measured.text}"
        for program, measured in clocks.items()
    ]
    medians = [measured.median for measured in clocks.values() if not isinstance(measured, str)]
    if len(medians) > 1 and max(medians) > min(medians) * (1 + within):
        share = max(medians) / min(medians) - 1
        lines.append(f"The clocks differ by {share:.1%}: lock them with nvidia-smi --lock-gpu-clocks, and run again.")
    return ["", *lines] if lines else []


def clocks_json(measured: Clocks | str) -> dict[str, Any]:
    """Return clocks (MHz) and shares of samples as JSON, or why they are unknown."""
    return {"not_measured": measured} if isinstance(measured, str) else asdict(measured)


def gate_markdown(judgements: Sequence[Judgement], name: str) -> str:
    """Return the report for a pull request."""
    shown = [judged for judged in by_severity(judgements) if judged.verdict != "same"]
    rows = "\n".join(["", *as_markdown(COLUMNS, shown)]) if shown else ""
    return f"### tui-probe gate: {printable(name)}\n\n{summary(judgements)}\n{rows}\n"


def gate_json(judgements: Sequence[Judgement], name: str, head: dict[str, Any]) -> str:
    """Return all verdicts as JSON."""
    rows = [
        {
            "kernel": judged.kernel, "metric": judged.metric, "before": judged.before, "after": judged.after,
            "verdict": judged.verdict, "why": judged.why, "place": judged.place,
        }
        for judged in by_severity(judgements)
    ]  # fmt: skip
    return dump_json({"schema": SCHEMA, "version": VERSION, "name": name, **head, "verdicts": rows}, indent=1)


def gate_junit(judgements: Sequence[Judgement], name: str) -> str:
    """Return JUnit XML: a test case per metric; what is worse fails, what has no verdict is skipped."""
    suite = ElementTree.Element("testsuite", name=printable(name), tests=str(len(judgements)))
    suite.set("failures", str(sum(judged.verdict == "worse" for judged in judgements)))
    suite.set("skipped", str(sum(judged.verdict == "cannot tell" for judged in judgements)))
    for judged in judgements:
        case = ElementTree.SubElement(suite, "testcase", classname=printable(judged.kernel), name=judged.metric)
        text = printable(f"{judged.label}: {judged.before} -> {judged.after} {judged.why} {judged.place}".rstrip())
        if judged.verdict == "worse":
            ElementTree.SubElement(case, "failure", message=text)
        elif judged.verdict == "cannot tell":
            ElementTree.SubElement(case, "skipped", message=text)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def gate_sarif(judgements: Sequence[Judgement]) -> str:
    """Return SARIF 2.1.0: a result per metric that is worse, at the worst line of its kernel."""
    results = [_sarif_result(judged) for judged in judgements if judged.verdict == "worse"]
    rules = [{"id": metric} for metric in dict.fromkeys(result["ruleId"] for result in results)]
    driver = {"name": "tui-probe", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": results}
    return dump_json(
        {"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": [run]}, indent=1
    )


def _sarif_result(judged: Judgement) -> dict[str, Any]:
    message = f"{judged.kernel}: {judged.label} {judged.before} -> {judged.after}"
    result: dict[str, Any] = {"ruleId": judged.metric, "level": "error", "message": {"text": printable(message)}}
    if place := _PLACE.search(judged.place):
        physical = {"artifactLocation": {"uri": place["file"]}, "region": {"startLine": int(place["line"])}}
        result["locations"] = [{"physicalLocation": physical}]
    return result
