"""What probes of instructions found: idle lanes, tensor operations, the mix, and the first NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tui_probe.analysis import divergence, inst_mix, nan_check, tensorop_count
from tui_probe.draw import units
from tui_probe.probekit.finding import Finding, place, share
from tui_probe.ptx.instruction_classes import CLASSES
from tui_probe.trace.results import WARP_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.analysis.by_line import LineSums
    from tui_probe.analysis.divergence import Divergence
    from tui_probe.analysis.inst_mix import InstructionMix
    from tui_probe.analysis.tensorop_count import TensorOperations
    from tui_probe.probekit.probe_results import ProbeResult

_MUCH: Final = 0.1
"""The part of all lanes from which on idle ones stand out."""
_NAMED: Final = 4


def of_divergence(of: ProbeResult) -> Iterator[Finding]:
    """The instruction with most idle lanes, and all branches and accesses."""
    if of.probe == "divergence":
        yield _lanes(divergence.analyse(of.result), "divergence_by_line")
        return
    counted = divergence.analyse_lines(of.result, _sites(of), of.kernel.folder)
    whole: Divergence = counted.whole  # type: ignore[assignment]
    worst = max(counted.lines, key=_idle, default=None)
    if worst is not None and _idle(worst):
        everything = WARP_SIZE * (whole.branches + whole.accesses)
        words = f"{place(worst.line, worst.source, worst.opcode)}, {divergence.lanes_per_execution(worst) or 0:.1f} of "
        words += f"{WARP_SIZE} lanes active"
        values = {"lanes_per_execution": divergence.lanes_per_execution(worst), "idle_lanes": _idle(worst)}
        much = _idle(worst) > _MUCH * everything
        yield Finding("worst_line", "most idle lanes", words, "lines", worst.line, much, values=values)
    yield _lanes(whole, "")


def _idle(line: LineSums) -> int:
    executions, lanes = divergence.executions_and_lanes(line)
    return WARP_SIZE * executions - lanes


def _lanes(found: Divergence, asks: str) -> Finding:
    parts = []
    for name, mean in (("branch", found.lanes_per_branch), ("access", found.lanes_per_access)):
        if mean is not None:
            parts.append(f"{mean:.1f} of {WARP_SIZE} at {'a' if name == 'branch' else 'an'} {name}")
    executions, lanes = found.branches + found.accesses, found.branch_lanes + found.access_lanes
    much = lanes < (1 - _MUCH) * WARP_SIZE * executions
    asks = asks if lanes < WARP_SIZE * executions else ""
    values = {"lanes_per_branch": found.lanes_per_branch, "lanes_per_access": found.lanes_per_access}
    words = ", ".join(parts) or "no branch and no access was executed"
    return Finding("lanes", "active lanes", words, stands_out=much, asks=asks, values=values)


def of_tensor_operations(of: ProbeResult) -> Iterator[Finding]:
    """Operations, how fast where the original was timed, and the instruction that does most of them."""
    if of.probe == "tensorop_count":
        yield _operations(of, tensorop_count.analyse(of.result))
        return
    counted = tensorop_count.analyse_lines(of.result, _sites(of), of.kernel.folder)
    whole: TensorOperations = counted.whole  # type: ignore[assignment]
    yield _operations(of, whole)
    if counted.worst is not None:
        line, multiply_adds = counted.worst
        words = f"{place(line.line, line.source, line.opcode)}, {share(multiply_adds, whole.multiply_adds)} of them"
        yield Finding("most_operations", "most of them", words, "lines", line.line)


def _operations(of: ProbeResult, found: TensorOperations) -> Finding:
    words, speed = "no matrix instruction was executed", None
    if found.operations:
        kinds = [f"{units.count(count)} {name}" for name, count in
                 (("mma", found.mma), ("wmma", found.wmma), ("wgmma", found.wgmma)) if count]  # fmt: skip
        words = f"{_large(found.operations)} operations in {', '.join(kinds)}"
        if of.timed_ms:
            speed = found.operations / (of.timed_ms * 1e-3)
            words += f": {speed / 1e12:.3g} TFLOP/s in the original's {units.duration(of.timed_ms * 1e-3)}"
    values = {"operations": found.operations, "operations_per_second": speed}
    return Finding("operations", "tensor cores", words, values=values)


def _large(number: int) -> str:
    """``12 288``, ``2.15 G``: as much as a person reads at once."""
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return units.count(number)


def of_mix(of: ProbeResult) -> Iterator[Finding]:
    """The largest classes, and arithmetic that is costly; by line also where it is."""
    if of.probe == "inst_mix":
        yield from _mix(inst_mix.analyse(of.result), "inst_mix_by_line")
        return
    counted = inst_mix.analyse_lines(of.result, _sites(of), of.kernel.folder)
    whole: InstructionMix = counted.whole  # type: ignore[assignment]
    yield from _mix(whole, "")
    kinds = ("fp64",) if whole.executed["fp64"] else CLASSES
    line = max(counted.lines, key=lambda each: each.total(*kinds), default=None)
    if line is not None and line.total(*kinds):
        part = share(line.total(*kinds), sum(whole.executed[kind] for kind in kinds))
        words = (
            f"{place(line.line, line.source, line.opcode)}, {part} of all {'fp64 ' if len(kinds) == 1 else ''}executed"
        )
        values = {"executed": line.total(*kinds)}
        yield Finding("most_executed", "executed most", words, "lines", line.line, values=values)


def _mix(found: InstructionMix, asks_for_doubles: str) -> Iterator[Finding]:
    largest = sorted(found.executed.items(), key=lambda pair: -pair[1])[:_NAMED]
    parts = ", ".join(f"{name} {share(number, found.total)}" for name, number in largest if number)
    words = f"{units.count(found.total)} of warps: {parts}"
    yield Finding("mix", "instructions", words, values={"total": found.total, **found.executed})
    arithmetic = [f"{name} {part:.0%}" for name in inst_mix.FLOATING if (part := found.share(name))]
    if arithmetic:
        doubles = found.share("fp64") or 0.0
        asks = asks_for_doubles if doubles else "tensorop_count" if found.executed["tensor"] else ""
        values = {f"{name}_share": found.share(name) for name in (*inst_mix.FLOATING, "tensor")}
        words = f"{', '.join(arithmetic)} of the floating-point arithmetic"
        yield Finding("arithmetic", "arithmetic", words, stands_out=doubles > 0, asks=asks, values=values)


def of_nan_check(of: ProbeResult) -> Iterator[Finding]:
    """Where the first NaN or infinity was stored, how many there were, and what was not looked at."""
    found = nan_check.analyse(of.result, of.kernel.folder)
    first = found.first
    if first is None:
        words = "no NaN and no infinity was stored"
        yield Finding("stores", "stores", words, "lines", values={"stores": found.stores})
    else:
        where = f"block ({','.join(map(str, first.block))}) thread ({','.join(map(str, first.thread))})"
        words = f"{first.words} stored at {place(first.line, first.source)} by {where}"
        values = {"address": first.address, "stores": found.stores}
        yield Finding("first", f"first {first.words.split()[0]}", words, "lines", first.line, True, values=values)
        words = f"{units.count(found.stores)} of NaN or infinity, counted by warp"
        yield Finding("stores", "stores", words, "lines", values={"stores": found.stores})
    if found.unchecked:
        words = f"{units.counted(len(found.unchecked), 'store instruction')}: nothing tells what they store"
        yield Finding("unchecked", "not looked at", words, "lines", found.unchecked[0].line)


def _sites(of: ProbeResult) -> tuple[int, ...]:
    return of.kernel.info.sites.get(0, ()) if of.kernel.info else ()
