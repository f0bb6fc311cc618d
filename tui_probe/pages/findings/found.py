"""What the probe of a kernel found in one launch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw.table import safe
from tui_probe.draw.units import NOT_MEASURED
from tui_probe.errors import TraceError
from tui_probe.pages.views import kind_of, names
from tui_probe.probekit import probe_results
from tui_probe.probekit.alike import extent_words
from tui_probe.probekit.finding import Finding
from tui_probe.probekit.kept import kept_words, sampled_words
from tui_probe.probekit.measured import first_value, lines_probe
from tui_probe.probekit.missing import not_known
from tui_probe.probekit.registry import probe_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.probekit.kind import Source
    from tui_probe.probekit.probe_results import ProbeResult

_MOST_REMEMBERED: Final = 64
_SAMPLE: Final = "sample"
"""The finding that says of which blocks all others are."""
_remembered: dict[tuple[str, int, int], Found] = {}
"""What was found last, by the result's file, its time, and how many launches had been timed."""


@dataclass(frozen=True, slots=True)
class Found:
    """The findings of one result, what stands out first; or the ``problem`` for which there are none.

    ``launch`` is its number, None where the log does not say.
    """

    probe: str
    launch: int | None
    simulated: bool
    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    unread: bool = False
    """Whether the result itself could not be read."""

    def record(self) -> dict[str, Any]:
        """As data."""
        return {
            "probe": self.probe,
            "launch": self.launch,
            "simulated": self.simulated,
            "problem": self.problem,
            "findings": [finding.record() for finding in self.findings],
        }

    def of_blocks(self, finding: Finding) -> Finding:
        """One of them for where it stands alone: with the blocks that it is said of, where these are not all."""
        sample = next((each.values for each in self.findings if each.key == _SAMPLE), None)
        if sample is None or finding.key == _SAMPLE:
            return finding
        blocks, measured = (sample[name] for name in ("blocks", "blocks_measured"))
        assert isinstance(blocks, int)
        assert isinstance(measured, int)
        return replace(finding, words=f"{finding.words} (of {extent_words((measured, blocks))})")

    @property
    def worst(self) -> Finding | None:
        """The one to look at first that has a place: what stands out, else a line, else what a drawing shows."""
        placed = [each for each in self.findings if each.page]
        wanted = (each for each in placed if each.stands_out), (each for each in placed if each.line)
        return next(chain(*wanted, (each for each in placed if kind_of(each.page).drawn)), None)


def find(source: Source) -> Found | None:
    """What the launch at hand says, or the newest that has a result; None if there is none.

    Reads the result, which may take a moment for one of hundreds of megabytes; the last ones are remembered.
    """
    kernel, results = source.kernel, source.trace.results
    row = source.launch.result if source.launch is not None else kernel.newest_result
    if row is None or kernel.status != "probed":
        return None
    kernel = kernel.with_probe(results.probe(row))
    number = results.launch(row)
    launch = None if number is None else source.trace.launches[number].number
    probe = probe_results.probe_of(kernel) or lines_probe(kernel)
    path = results.path(row)
    try:
        written = path.stat().st_mtime_ns if path is not None and path.is_file() else 0
        key = (str(path), written, len(kernel.times.originals_ms))
        if key not in _remembered:
            findings = tuple(_findings(probe_results.read(source)))
            _remembered[key] = Found(probe, launch, source.trace.state.simulated, findings, not_known(kernel))
            for old in list(_remembered)[:-_MOST_REMEMBERED]:
                _remembered.pop(old, None)
        return _remembered[key]
    except (TraceError, OSError) as error:
        problem = str(error).replace(f"{source.trace.directory}/", "")
        return Found(probe, launch, source.trace.state.simulated, (), problem, unread=True)


def find_all(source: Source) -> list[Found]:
    """What each probe of the run says of the launch at hand, or of the nearest that had it; without one, of the newest.

    One where the run had one probe, none where there is no result.
    """
    found = (find(each) for each in probe_results.of_each_probe(source))
    return [each for each in found if each is not None]


def _findings(of: ProbeResult) -> list[Finding]:
    probe = probe_named(of.probe)
    if probe is not None and probe.findings is not None:
        found = [_with_page(of, each) for each in probe.findings(of, probe.analyse(of))]
        return [*sorted(found, key=lambda finding: finding.order), *_sample(of)]
    if of.kernel.matched_nothing:
        return [Finding("kept", "records", f"{NOT_MEASURED} the probe matched nothing")]
    told = (("first_value", "values", first_value(of)), ("kept", "records", kept_words(of.result)))
    return [Finding(key, label, safe(words)) for key, label, words in told if words]


def _with_page(of: ProbeResult, finding: Finding) -> Finding:
    """The finding, if there is the page that it names. Raises TraceError."""
    if finding.page and finding.page not in names():
        raise TraceError(f"probe {of.probe}: finding {finding.key!r} is on page {finding.page!r}, which there is not")
    return finding


def _sample(of: ProbeResult) -> Iterator[Finding]:
    """That all of it is said of some blocks alone, if so."""
    sample = of.result.sample
    if sample is not None:
        values = {"blocks": of.result.header.blocks, "blocks_measured": len(sample.blocks)}
        yield Finding(_SAMPLE, "sample", f"{sampled_words(sample)}: findings are of these blocks only", values=values)
