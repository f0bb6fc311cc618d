"""What was not probed, and why: kernels, and launches of kernels that were probed otherwise; and probed in vain."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tui_probe.draw import units
from tui_probe.draw.shorten import shorten
from tui_probe.draw.table import safe
from tui_probe.near import meant
from tui_probe.reasons import Reason
from tui_probe.trace.launches import CAPTURED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.trace.model import Kernel, Trace

_MOST_NAMED = 4


class Listed(Protocol):
    """A kernel, or a row of one."""

    @property
    def demangled(self) -> str: ...
    @property
    def status(self) -> str: ...


IN_VAIN = "Kernels in which the probe matched nothing"
REMARKS = "Remarks on probed kernels"


def not_probed_lines(trace: Trace, cells: int) -> list[str]:
    """One line per reason; none if everything was probed."""
    return [*none_named(trace), *_kernels(trace, cells), *_launches(trace, cells)]


def none_named(trace: Trace) -> list[str]:
    """That --kernel named none of the kernels that there were, and which it may have meant."""
    asked = named_none(trace, trace.kernels)
    return [] if asked is None else [none_named_words(asked, trace.kernels)]


def named_none(trace: Trace, kernels: Iterable[Listed]) -> str | None:
    """What --kernel asked for, where it named none of these kernels of the trace; None where it did, or was not said.

    ``kernels`` need not be all: while the program runs, others may come.
    """
    asked = None if trace.run_info is None else trace.run_info.options.get("kernels")
    found = isinstance(asked, str) and {kernel.status for kernel in kernels} == {"excluded"}
    return asked if found else None


def none_named_words(asked: str, kernels: Iterable[Listed]) -> str:
    """``--kernel mul names none of the kernels: did you mean matmul?``, or which kernels there are."""
    names = list(dict.fromkeys(safe(kernel.demangled.partition("(")[0]) for kernel in kernels))
    others = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    near = next(filter(None, (meant(word, names) for word in asked.split(":"))), "")
    listed = f": {', '.join(names[:_MOST_NAMED])}{others}"
    return f"--kernel {safe(asked)} names none of the kernels{near or listed}"


def in_vain_lines(trace: Trace, cells: int) -> list[str]:
    """List the probed kernels in which the probe matched nothing."""
    return _remarked(trace, cells, matched_nothing=True)


def remark_lines(trace: Trace, cells: int) -> list[str]:
    """List the engine's other remarks on probed kernels, such as a form with few registers."""
    return _remarked(trace, cells, matched_nothing=False)


def _remarked(trace: Trace, cells: int, *, matched_nothing: bool) -> list[str]:
    groups: defaultdict[str, list[Kernel]] = defaultdict(list)
    for kernel in chain.from_iterable(each.by_probe() for each in trace.kernels):
        if kernel.status == "probed" and kernel.reason and kernel.matched_nothing is matched_nothing:
            groups[kernel.reason].append(kernel)
    return [line for reason, kernels in groups.items() for line in _group(reason, kernels, cells)]


def _kernels(trace: Trace, cells: int) -> list[str]:
    """Kernels that were not probed, together by what became of them."""
    groups: defaultdict[tuple[str, str], list[Kernel]] = defaultdict(list)
    for kernel in trace.kernels:
        for one in kernel.by_probe() if kernel.status == "probed" else (kernel,):
            if one.status != "probed":
                probe = f"{one.status} with -p {one.probe}" if one.probe else one.status
                groups[probe, one.reason or "no reason given"].append(one)
    grouped = (
        (reason if reason.startswith(status) else f"{status}, {reason}", kernels)
        for (status, reason), kernels in groups.items()
    )
    return [line for words, kernels in grouped for line in _group(words, kernels, cells)]


def _group(words: str, kernels: list[Kernel], cells: int) -> list[str]:
    """Kernels of which the same is said: how many, and the first by name."""
    launches = sum(kernel.launches for kernel in kernels)
    counts = f"{units.counted(len(kernels), 'kernel')}, {units.counted(launches, 'launch')}"
    lines = [f"{safe(words)}: {counts}"]
    lines += [f"  #{kernel.index} {_name(kernel, cells)}" for kernel in kernels[:_MOST_NAMED]]
    if len(kernels) > _MOST_NAMED:
        lines.append(f"  and {len(kernels) - _MOST_NAMED} more")
    return lines


def _launches(trace: Trace, cells: int) -> list[str]:
    """Launches of probed kernels that were passed through, but for those that were not chosen."""
    lines = []
    for (index, why), count in sorted(_passed(trace).items(), key=lambda each: (each[0][0], each[0][1].text)):
        kernel = trace.kernels.get(index)
        if kernel is None or kernel.status != "probed" or why.code in ("not-sampled", CAPTURED):
            continue
        share = f"{units.count(count)} of {units.counted(kernel.launches, 'launch')} passed through"
        lines.append(f"{share}, {safe(why.text)}:")
        lines.append(f"  #{kernel.index} {_name(kernel, cells)}")
    return lines


def _passed(trace: Trace) -> Counter[tuple[int, Reason]]:
    """How many launches of a kernel, by its index, passed through for each reason."""
    kernels, reasons = trace.launches.column("kernel"), trace.launches.column("reason")
    passed = trace.launches.column("probed") == 0
    pairs, counts = np.unique(np.stack((kernels, reasons))[:, passed], axis=1, return_counts=True)
    reasons_given = trace.launches.reasons
    found: Counter[tuple[int, Reason]] = Counter()
    for (index, reason), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        found[index, reasons_given[reason] if reason >= 0 else Reason("no reason given", None)] += count
    for kernel, why, count in trace.passed.counts():
        if kernel is not None:
            found[kernel, why] += count
    return found


def _name(kernel: Kernel, cells: int) -> str:
    return shorten(safe(kernel.demangled), cells - len(f"  #{kernel.index} ") - 2)
