"""Probes of a run without a result, of one kernel or of all, with the reasons.

Absence must not read as 0: a probe that left no result is named with the reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.verdicts.probe_coverage import usual_launch_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tui_probe.reasons import Reason
    from tui_probe.trace.model import Kernel, KernelFacts, ProbedKernel, Run, Trace

_OTHER_PROBES: Final = "other-probes"
"""Code of the reason that all launches of a kernel had other probes of the run."""


@dataclass(frozen=True, slots=True)
class UnmeasuredProbe:
    """A probe that was asked for, and why it has no result."""

    probe: str
    reason: str
    code: str = _OTHER_PROBES
    """The code of the reason."""

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {"probe": self.probe, "reason": self.reason}


def unmeasured_probes(kernel: KernelFacts) -> list[UnmeasuredProbe]:
    """The probes of a run with several that are in a kernel and have no result of it."""
    if not _saves_results(kernel.trace) or kernel.status != "probed":
        return []
    return [
        UnmeasuredProbe(name, _unserved_reason(probed), _reason_code(probed))
        for name, probed in kernel.kernel.named_probes.items()
        if probed.status == "probed" and not probed.result_rows and not probed.matched_nothing
    ]


def unused_probes(trace: Trace) -> list[UnmeasuredProbe]:
    """The probes of a run that have no result of any kernel, although some kernel may have what they measure; none
    while it lasts, and where no kernel was launched.
    """
    kernels = [kernel for kernel in trace.kernels if kernel.launches]
    if not kernels or trace.state.running or not _saves_results(trace):
        return []
    named = tuple(dict.fromkeys(name for kernel in kernels for name in kernel.named_probes))
    asked = (trace.run_info.probes if trace.run_info is not None else ()) or named
    unused = [(name, _kernels_with_sites(kernels, name)) for name in asked if not _has_result(kernels, name)]
    return [UnmeasuredProbe(name, _run_reason(left, name)) for name, left in unused if left]


def unmeasured_texts(probes: Iterable[UnmeasuredProbe]) -> Iterator[str]:
    """``not measured by -p A, B: every kernel ran once, with other probes``: those of one reason together, which may
    name the first of them.
    """
    by_reason: dict[str, list[UnmeasuredProbe]] = {}
    for unmeasured in probes:
        by_reason.setdefault(unmeasured.reason.replace(unmeasured.probe, ""), []).append(unmeasured)
    for same in by_reason.values():
        names = ", ".join(printable(unmeasured.probe) for unmeasured in same)
        yield f"not measured by -p {names}: {printable(same[0].reason)}"


def _saves_results(trace: Run) -> bool:
    options = {} if trace.run_info is None else trace.run_info.options
    return not options.get("memusage") and not (options.get("benchmark") and not options.get("save_results"))


def _has_result(kernels: Iterable[Kernel], name: str) -> bool:
    return any(
        kernel.named_probes[name].result_rows if name in kernel.named_probes else
        not kernel.named_probes and kernel.result_rows
        for kernel in kernels
    )  # fmt: skip


def _kernels_with_sites(kernels: Iterable[Kernel], name: str) -> list[Kernel]:
    """Return the kernels that may have something for a probe to measure."""
    return [
        kernel for kernel in kernels if name not in kernel.named_probes or not kernel.named_probes[name].matched_nothing
    ]


def _run_reason(kernels: Iterable[Kernel], name: str) -> str:
    """The usual reason of the kernels."""
    (reason, number), *others = Counter(_kernel_reason(kernel, name) for kernel in kernels).most_common()
    return f"{units.counted(number, 'kernel')} {reason}" if others else f"every kernel {reason}"


def _kernel_reason(kernel: Kernel, name: str) -> str:
    probed = kernel.named_probes.get(name)
    if probed is not None and probed.status == "probed":
        return _unserved_reason(probed)
    reason = probed.reason if probed is not None else kernel.reason
    return f"ran without the probe: {reason}" if reason else "ran without the probe"


def _reason_code(probed: ProbedKernel) -> str:
    stated = _stated_reason(probed)
    return (stated and stated.code) or _OTHER_PROBES


def _stated_reason(probed: ProbedKernel) -> Reason | None:
    """Return the reason in the log why it was neither fused with others nor replayed."""
    return probed.kernel.replay_obstacle or probed.alternation_reason


def _unserved_reason(probed: ProbedKernel) -> str:
    """Return the reason for which no launch had the probe: why it was not fused with others, or not replayed."""
    launches, stated = probed.launches, _stated_reason(probed)
    if stated is None and not probed.kernel.launches_probed:
        stated = usual_launch_reason(probed.kernel)
    why = f": {stated.text}" if stated else ""
    if launches < len(probed.kernel.named_probes):
        times = "once" if launches == 1 else f"{launches} times"
        return f"ran {times}, with other probes{why}"
    return f"ran without the probe{why}"
