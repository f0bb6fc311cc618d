"""What one trace says of memory: that of its program, and that of its probe."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tui_probe.input_limits import PROGRAM_OUTPUT
from tui_probe.probekit.probe_results import probe_of
from tui_probe.trace.allocations import peak_allocated
from tui_probe.trace.plain_file import read_start

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tui_probe.evals.given import Given
    from tui_probe.trace.model import Kernel, Trace

_SAID: Final = re.compile(rb"^max memory:.*?(\d{1,18})[ \r]*$", re.MULTILINE)
_LEFT_OUT: Final = ("switched-off", "outside-range", "not-selected", "not-chosen", "excluded")
SIZED, COUNTED, PROBED = "sized", "counted", "probed"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of one trace; None is not known. ``kernels`` of ``all_kernels`` have a size for the probe.

    ``how`` says where those come from: computed, counted by a kernel that keeps none, or of probed launches.
    """

    model: str
    probe: str
    original: int | None
    said: bool
    """Whether the program itself said how much it took, and it is not the peak of its allocations."""
    probe_bytes: int | None
    device_bytes: int | None
    kernels: int
    all_kernels: int
    how: str | None


def sizes_of(given: Given) -> list[Sizes]:
    """One for each probe; none for what is no trace, or whose probe is not known. TraceError for an unreadable log."""
    trace = given.trace
    if trace is None:
        return []
    kernels = [one for one in given.kernels if not _was_left_out(one)]
    several = list(dict.fromkeys(name for kernel in kernels for name in kernel.probings))
    if several:
        return [_sizes(given, trace, name, [one.with_probe(name) for one in kernels]) for name in several]
    probe = _probe(trace)
    return [] if probe is None else [_sizes(given, trace, probe, kernels)]


def _sizes(given: Given, trace: Trace, probe: str, kernels: Sequence[Kernel]) -> Sizes:
    sized = [one.probe_bytes for one in kernels if one.probe_bytes is not None]
    on_device = [one.device_bytes for one in kernels if one.device_bytes is not None]
    said = _said(given.path)
    return Sizes(
        model=_model(given, probe),
        probe=probe,
        original=peak_allocated(trace) if said is None else said,
        said=said is not None,
        probe_bytes=max(sized, default=None),
        device_bytes=max(on_device, default=None),
        kernels=len(sized),
        all_kernels=len(kernels),
        how=_how(trace, kernels) if sized else None,
    )


def _was_left_out(kernel: Kernel) -> bool:
    """Whether it was never asked for: all of its launches were while the model warmed up."""
    reason = kernel.stated_reason
    return reason is not None and reason.code in _LEFT_OUT


def _probe(trace: Trace) -> str | None:
    told = None if trace.run_info is None else trace.run_info.probe
    return told or next((name for kernel in trace.kernels if (name := probe_of(kernel))), None)


def _model(given: Given, probe: str) -> str:
    """``MODEL.PROBE`` is the name of a collected trace; older ones lie in ``MODEL/PROBE/PART/``."""
    folders = given.path.absolute().parts
    if given.label.endswith(f".{probe}"):
        return given.label.removesuffix(f".{probe}")
    return folders[folders.index(probe) - 1] if probe in folders[1:] else given.label


def _said(directory: Path) -> int | None:
    """The most of what the program said, in the trace or, as older collections keep its output, beside it."""
    for path in (directory / "stdout.log", directory.parent / "stdout.log"):
        if path.is_file():
            found = _SAID.findall(read_start(path, PROGRAM_OUTPUT))
            return max(map(int, found), default=None)
    return None


def _how(trace: Trace, kernels: Sequence[Kernel]) -> str:
    """By the launches that were sized: of a run with several probes, those that stand for this one."""
    largest = [one.largest_sized for one in kernels if one.largest_sized is not None]
    of_these = {trace.launches[row].reason_code for row in largest}
    codes = of_these or {reason.code for reason in trace.launches.reasons}
    if "only-counted" in codes:
        return COUNTED
    return SIZED if "only-sized" in codes else PROBED
