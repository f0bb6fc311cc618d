"""Lists of kernels and launches that ran unprobed, and of remarks on probed kernels, by reason, for reports."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.printable import printable
from tui_probe.draw.shorten import shorten
from tui_probe.errors import did_you_mean
from tui_probe.reasons import Reason, advice_on
from tui_probe.trace.launches import CAPTURED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.trace.model import KernelFacts, Trace

NO_MATCH_NOTE: Final = "Kernels in which the probe matched nothing"
REMARKS: Final = "Remarks on probed kernels"
_MAX_NAMES: Final = 4
"""Kernels named in a group, or as those that --kernel may have meant."""
_NO_REASON: Final = "no reason given"
_EXPECTED_REASONS: Final = ("not-sampled", CAPTURED)
"""Codes of launches that are no loss: launch sampling left them out, or they were captured and did not run."""


class NamedKernel(Protocol):
    """A kernel, or a row of one."""

    @property
    def demangled(self) -> str: ...
    @property
    def status(self) -> str: ...


def unprobed_lines(trace: Trace, cells: int) -> list[str]:
    """One line per reason; none if everything was probed."""
    return [*kernel_filter_lines(trace), *_kernel_lines(trace, cells), *_launch_lines(trace, cells)]


def kernel_filter_lines(trace: Trace) -> list[str]:
    """Say that --kernel named none of the kernels that there were, and which it may have meant."""
    pattern = unmatched_kernel_filter(trace, trace.kernels)
    return [] if pattern is None else [kernel_filter_warning(pattern, trace.kernels)]


def unmatched_kernel_filter(trace: Trace, kernels: Iterable[NamedKernel]) -> str | None:
    """Return the pattern of --kernel that matched none of these kernels; None where it did, or was not given.

    ``kernels`` need not be all: while the program runs, others may come.
    """
    pattern = None if trace.run_info is None else trace.run_info.options.get("kernels")
    all_excluded = isinstance(pattern, str) and {kernel.status for kernel in kernels} == {"excluded"}
    return pattern if all_excluded else None


def kernel_filter_warning(pattern: str, kernels: Iterable[NamedKernel]) -> str:
    """Return ``--kernel mul matches no kernel: did you mean matmul?``, or which kernels there are."""
    names = list(dict.fromkeys(printable(kernel.demangled.partition("(")[0]) for kernel in kernels))
    suggestion = next(filter(None, (did_you_mean(word, names) for word in pattern.split(":"))), "")
    suggestion = suggestion or f"; kernels: {units.listed(names, _MAX_NAMES)}"
    return f"--kernel {printable(pattern)} matches no kernel{suggestion}"


def no_match_lines(trace: Trace, cells: int) -> list[str]:
    """List the probed kernels in which the probe matched nothing."""
    return _remarked_kernels(trace, cells, matched_nothing=True)


def remark_lines(trace: Trace, cells: int) -> list[str]:
    """List the engine's other remarks on probed kernels, such as a form with few registers."""
    return _remarked_kernels(trace, cells, matched_nothing=False)


def _remarked_kernels(trace: Trace, cells: int, *, matched_nothing: bool) -> list[str]:
    groups: defaultdict[str, list[KernelFacts]] = defaultdict(list)
    for kernel in chain.from_iterable(process_kernel.by_probe() for process_kernel in trace.kernels):
        if kernel.status == "probed" and kernel.reason and kernel.matched_nothing is matched_nothing:
            groups[kernel.reason].append(kernel)
    return [line for reason, kernels in groups.items() for line in _remark_group_lines(reason, kernels, cells)]


def _remark_group_lines(reason: str, kernels: list[KernelFacts], cells: int) -> list[str]:
    """Return the kernels of one remark; only their number where the probe matched nothing and others measured them."""
    lines = _kernel_group_lines(reason, kernels, cells)
    measured_by_others = all(kernel.matched_nothing and len(kernel.kernel.named_probes) > 1 for kernel in kernels)
    return lines[:1] if measured_by_others else lines


def _kernel_lines(trace: Trace, cells: int) -> list[str]:
    """Kernels that were not probed, by status and reason."""
    groups: defaultdict[tuple[str, str], list[KernelFacts]] = defaultdict(list)
    for kernel in trace.kernels:
        if kernel.status != "probed":
            groups[kernel.status, kernel.reason or _NO_REASON].append(kernel)
            continue
        for names, probed_kernel in missing_probes(kernel):
            status = f"{probed_kernel.status} with {names}" if names else probed_kernel.status
            groups[status, probed_kernel.reason or _NO_REASON].append(probed_kernel)
    kernels_by_text = (
        (reason if reason.startswith(status) else f"{status}, {reason}", kernels)
        for (status, reason), kernels in groups.items()
    )
    return [line for text, kernels in kernels_by_text for line in _kernel_group_lines(text, kernels, cells)]


def missing_probes(kernel: KernelFacts) -> list[tuple[str, KernelFacts]]:
    """The probes that a kernel does not have, as options of run: those with one reason together, with the first."""
    groups: defaultdict[tuple[str, str | None], list[KernelFacts]] = defaultdict(list)
    for probed_kernel in kernel.by_probe():
        if probed_kernel.status != "probed":
            groups[probed_kernel.status, probed_kernel.reason].append(probed_kernel)
    return [
        (" ".join(f"-p {printable(probed_kernel.probe)}" for probed_kernel in group if probed_kernel.probe), group[0])
        for group in groups.values()
    ]


def _kernel_group_lines(statement: str, kernels: list[KernelFacts], cells: int) -> list[str]:
    """Kernels with the same statement: how many, and the first by name."""
    launches = sum(kernel.launches for kernel in kernels)
    counts = f"{units.counted(len(kernels), 'kernel')}, {units.counted(launches, 'launch')}"
    lines = [f"{printable(statement)}: {counts}"]
    lines += [f"  #{kernel.index} {_kernel_name(kernel, cells)}" for kernel in kernels[:_MAX_NAMES]]
    if len(kernels) > _MAX_NAMES:
        lines.append(f"  and {len(kernels) - _MAX_NAMES} more")
    return lines


def _launch_lines(trace: Trace, cells: int) -> list[str]:
    """Launches of probed kernels that ran unprobed for a reason that is not expected; the advice on a reason once, at
    the first kernel.
    """
    lines = []
    given_advice: set[str] = set()
    counts = _unprobed_launch_counts(trace)
    for index, reason in sorted(counts, key=lambda pair: (pair[0], pair[1].text)):
        kernel = trace.kernels.get(index)
        if kernel is None or kernel.status != "probed" or reason.code in _EXPECTED_REASONS:
            continue
        share = f"{units.count(counts[index, reason])} of {units.counted(kernel.launches, 'launch')} ran unprobed"
        lines.append(f"{share}, {printable(reason.text)}:")
        lines.append(f"  #{kernel.index} {_kernel_name(kernel, cells)}")
        if (advice := advice_on(reason.code, reason.parameters)) and advice not in given_advice:
            given_advice.add(advice)
            lines.append(f"    fix: {advice}")
    return lines


def _unprobed_launch_counts(trace: Trace) -> Counter[tuple[int, Reason]]:
    """Count the launches that ran unprobed by index of the kernel and reason: single launches of the log, and those
    of lines that name many.
    """
    launches = trace.launches
    unprobed = launches.column("probed") == 0
    codes = np.stack((launches.column("kernel"), launches.column("reason")))[:, unprobed]
    pairs, counts = np.unique(codes, axis=1, return_counts=True)
    launch_counts: Counter[tuple[int, Reason]] = Counter()
    for (index, number), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        reason = launches.reasons[number] if number >= 0 else Reason(_NO_REASON, None)
        launch_counts[index, reason] += count
    for kernel, reason, count in trace.unprobed.counts():
        if kernel is not None:
            launch_counts[kernel, reason] += count
    return launch_counts


def _kernel_name(kernel: KernelFacts, cells: int) -> str:
    return shorten(printable(kernel.demangled), cells - len(f"  #{kernel.index} ") - 2)
