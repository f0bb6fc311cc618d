"""Results that a page of a kernel shows: the newest, or the newest with a fault, and those of joined probes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tui_probe.errors import TraceError
from tui_probe.probekit.measured import known_probe
from tui_probe.probekit.probe_results import read_result, read_result_row
from tui_probe.probekit.recognised import analysis_name
from tui_probe.probekit.registry import probe_named

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tui_probe.probekit.page_kinds import ViewSource
    from tui_probe.probekit.probe import Probe
    from tui_probe.probekit.probe_results import ProbeResult
    from tui_probe.trace.launches import Launch
    from tui_probe.trace.model import KernelFacts, ProbedKernel, Run

_MAX_CHECKED: Final = 1000
"""Maximum number of results of a kernel that are checked for faults, the newest ones."""
_MAX_CHECKED_BYTES: Final = 256 << 20
"""Maximum bytes of all checked results of a kernel."""
_MAX_RESULT_BYTES: Final = 32 << 20
"""Maximum bytes of a checked result; whether a larger one has a fault is unknown."""
_MAX_REMEMBERED: Final = 10_000
"""Maximum number of results, of all kernels, whose faults are remembered."""
_faults: dict[tuple[str, int, bool], bool] = {}
"""True for a result with a fault, by its path, its time, and the state of the context (True: it had failed)."""


@dataclass(frozen=True)
class JoinedResult:
    """Results of a group of probes, with one joined analysis; of a probe without a group its one result."""

    probe: Probe
    results: tuple[ProbeResult, ...]

    @cached_property
    def analysis(self) -> Any:
        """Analysis of the result, joined for a group of probes. Raises TraceError."""
        analyses = [known_probe(result.kernel).analyse(result) for result in self.results]
        return analyses[0] if self.probe.group is None else self.probe.group.join(analyses)

    @property
    def name(self) -> str:
        """Name of the probe; of a group the name of the first, even without a result."""
        return self.results[0].probe if self.probe.group is None else self.probe.group.probes[0]

    @property
    def newest_launch(self) -> Launch | None:
        """The newest launch; None if the log does not name one."""
        launches = [result.launch for result in self.results if result.launch is not None]
        return max(launches, key=lambda launch: launch.row, default=None)

    @property
    def launch_label(self) -> str:
        """``launches 76, 79 of #1``."""
        launches = [result.launch for result in self.results if result.launch is not None]
        numbers = sorted(launch.number for launch in launches if launch.number is not None)
        if len(self.results) == 1 or len(numbers) < len(self.results):
            return ", ".join(result.launch_label for result in self.results)
        return f"launches {', '.join(map(str, numbers))} of #{self.results[0].kernel.index}"


def joined_sources(source: ViewSource) -> list[ViewSource]:
    """Return the kernel under each probe with results whose analysis is joined with that of ``source``.

    Without results it is under the first of these probes; a probe without groups is ``source`` itself.
    """
    groups = known_probe(source.kernel).group
    if groups is None:
        return [source]
    by_name = {analysis_name(part.kernel): part for part in reversed(source.of_all_probes())}
    parts = [by_name[name] for name in groups.probes if name in by_name]
    return [part for part in parts if part.kernel.result_rows and not part.kernel.matched_nothing] or parts[:1]


def unjoined_sources(source: ViewSource) -> Iterator[ViewSource]:
    """Yield the kernel under each probe of the run; of a group only under the first."""
    for probe_source in source.by_probe():
        if joined_sources(probe_source)[0].kernel.probe == probe_source.kernel.probe:
            yield probe_source


def joined_name(kernel: KernelFacts) -> str:
    """Return the name of the probe; of a group the name of the first, even without a result."""
    groups = known_probe(kernel).group
    return groups.probes[0] if groups is not None else analysis_name(kernel) or ""


@dataclass(frozen=True, slots=True)
class ShownResult:
    """The ``row`` of the result that is shown, None without any; ``unchecked`` others were not checked for faults."""

    row: int | None
    unchecked: int = 0


def find_shown_result(source: ViewSource, *, may_read: bool = True) -> ShownResult:
    """Find the result of the launch; without a launch the newest one, or the newest with a fault if the probe looks for
    faults in each launch.

    Reads a limited number of results, each once; none without ``may_read``: then only faults that were found before
    count.
    """
    if source.launch is not None:
        return ShownResult(source.launch.result)
    newest = source.kernel.find_newest_result()
    probed_kernel = None if newest is None else source.kernel.kernel_of_result(newest)
    probe = None if probed_kernel is None else probe_named(analysis_name(probed_kernel))
    if probed_kernel is None or probe is None or not probe.fault_in_any_launch or probed_kernel.matched_nothing:
        return ShownResult(newest)
    rows, unchecked, checked = probed_kernel.result_rows, 0, 0
    for row, status in newest_results(source.trace, rows):
        checked += 1
        has_fault = None
        if status is not None and status.st_size <= _MAX_RESULT_BYTES:
            has_fault = _has_fault(probe, probed_kernel, row, status.st_mtime_ns, may_read=may_read)
        if has_fault:
            return ShownResult(row)
        unchecked += has_fault is None and row != newest
    return ShownResult(newest, unchecked + len(rows) - checked)


def newest_results(trace: Run, rows: Sequence[int]) -> Iterator[tuple[int, os.stat_result | None]]:
    """Yield the newest of ``rows`` first, with the state of the file: as many as are checked for faults."""
    bytes_left = _MAX_CHECKED_BYTES
    for row in islice(reversed(rows), _MAX_CHECKED):
        status = _file_status(trace.results.path(row))
        bytes_left -= 0 if status is None else status.st_size
        if bytes_left < 0:
            return
        yield row, status


def _file_status(path: Path | None) -> os.stat_result | None:
    try:
        return None if path is None else path.stat()
    except OSError:
        return None


def _has_fault(probe: Probe, kernel: ProbedKernel, row: int, mtime_ns: int, *, may_read: bool) -> bool | None:
    """Return whether the result has a finding that is a fault; None if it was not read or cannot be read.

    ``mtime_ns`` is part of the key of the cache, since a file may be replaced.
    """
    trace = kernel.trace
    # A context that failed makes an access of the last launch a fault.
    key = (str(trace.results.path(row)), mtime_ns, trace.state.context_failed is not None)
    if key not in _faults and may_read and probe.findings is not None:
        try:
            result = read_result_row(trace, kernel, row)
            findings = probe.findings(result, probe.analyse(result))
            _faults[key] = any(finding.wrong_result for finding in findings)
        except TraceError:
            return None
        for oldest_key in list(_faults)[:-_MAX_REMEMBERED]:
            _faults.pop(oldest_key, None)
    return _faults.get(key)


def read_joined(parts: Sequence[ViewSource]) -> JoinedResult:
    """Return the results of ``joined_sources`` to show, or those of their launches. Raises TraceError naming a file."""
    return read_joined_rows([(part, find_shown_result(part).row) for part in parts])


def read_joined_rows(parts: Iterable[tuple[ViewSource, int | None]]) -> JoinedResult:
    """Return the results of ``joined_sources`` in these rows, None for a result to find. Raises TraceError."""
    results = tuple(_read_row(source, row) for source, row in parts)
    return JoinedResult(known_probe(results[0].kernel), results)


def _read_row(source: ViewSource, row: int | None) -> ProbeResult:
    if row is None:
        return read_result(source)
    return read_result_row(source.trace, source.kernel, row)
