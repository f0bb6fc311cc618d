"""Matching of kernels between two traces: by name, then by grid and block."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from tui_probe.draw import units
from tui_probe.probekit.page_kinds import ViewSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.trace.launch_shape import Dim3
    from tui_probe.trace.model import Kernel, KernelFacts, Trace

LaunchShape: TypeAlias = "tuple[Dim3, Dim3]"
"""Grid and block of a launch."""
MAX_SHAPES: Final = 8
"""Shapes of a kernel that are compared one by one, those with most results."""


@dataclass(frozen=True, slots=True)
class KernelMatch:
    """A kernel on both sides. ``grid`` and ``block`` are None where they vary or differ.

    With ``shape`` it is about the launches of one grid and block only, and about what the probe saw of them.
    """

    baseline: ViewSource
    candidate: ViewSource
    grid: Dim3 | None
    block: Dim3 | None
    shape: LaunchShape | None = None
    has_results: bool = True
    """True if results of the probe are part of it: not of launches of several shapes together."""

    @property
    def names_differ(self) -> bool:
        """Return whether the two kernels have different names: neither is a better version of the other."""
        return self.baseline.kernel.name != self.candidate.kernel.name

    @property
    def probes_differ(self) -> bool:
        """Return whether the two ran under different probes, if known: then their costs differ."""
        baseline_run, candidate_run = (side.trace.run_info for side in (self.baseline, self.candidate))
        return bool(
            baseline_run
            and candidate_run
            and baseline_run.probe
            and candidate_run.probe
            and baseline_run.probe != candidate_run.probe
        )

    @property
    def shape_texts(self) -> tuple[str, str]:
        """Grid and block: ``8``, ``8→16`` where they differ, ``several`` where launches vary."""
        if self.grid is not None and self.block is not None:
            return units.extent(self.grid), units.extent(self.block)
        (grid, block), (candidate_grid, candidate_block) = _shape_texts(self.baseline), _shape_texts(self.candidate)
        return _change_text(grid, candidate_grid), _change_text(block, candidate_block)


def result_shape(trace: Trace, row: int) -> LaunchShape | None:
    """Grid and block of the launch of a result; None where the log names no launch."""
    launch = trace.results.launch(row)
    return None if launch is None else (trace.launches[launch].grid, trace.launches[launch].block)


def match_pair(baseline: ViewSource, candidate: ViewSource) -> KernelMatch:
    """Two kernels or launches that are said to be the same."""
    baseline_launch, candidate_launch = baseline.launch or baseline.kernel, candidate.launch or candidate.kernel
    varies = any(side.launch is None and _varies(side.kernel) for side in (baseline, candidate))
    has_one_shape = not varies and (baseline_launch.grid, baseline_launch.block) == (
        candidate_launch.grid,
        candidate_launch.block,
    )
    return KernelMatch(
        baseline,
        candidate,
        baseline_launch.grid if has_one_shape else None,
        baseline_launch.block if has_one_shape else None,
    )


def match_shapes(baseline: ViewSource, candidate: ViewSource) -> list[KernelMatch]:
    """Two kernels as a whole, and shape by shape where both were launched in several of the same."""
    match = match_pair(baseline, candidate)
    if baseline.launch or candidate.launch or not (_varies(baseline.kernel) or _varies(candidate.kernel)):
        return [match]
    baseline_shapes, candidate_shapes = _shape_counts(baseline), _shape_counts(candidate)
    common_shapes = [shape for shape, _ in baseline_shapes.most_common() if shape in candidate_shapes][:MAX_SHAPES]
    return [
        replace(match, has_results=not common_shapes),
        *(KernelMatch(baseline, candidate, *shape, shape) for shape in common_shapes),
    ]


def _varies(kernel: KernelFacts) -> bool:
    return kernel.grid_varies or kernel.block_varies


def _shape_texts(source: ViewSource) -> tuple[str, str]:
    launch, kernel = source.launch or source.kernel, source.kernel
    may_vary = source.launch is None
    return (
        "several" if may_vary and kernel.grid_varies else units.extent(launch.grid),
        "several" if may_vary and kernel.block_varies else units.extent(launch.block),
    )


def _change_text(baseline: str, candidate: str) -> str:
    return baseline if baseline == candidate else f"{baseline}→{candidate}"


def _shape_counts(source: ViewSource) -> Counter[LaunchShape]:
    """The shapes of the launches that have results, and how many have."""
    shapes = (result_shape(source.trace, row) for row in source.kernel.result_rows)
    return Counter(shape for shape in shapes if shape is not None)


def match_traces(baseline: Trace, candidate: Trace) -> tuple[list[KernelMatch], list[Kernel], list[Kernel]]:
    """The kernels of two traces that are the same, in the order of the first, and those that only one has.

    Of several kernels of one name those with the same grid and block are the same, then the n-th of both.
    """
    matches: dict[int, KernelMatch] = {}
    candidate_kernels = _kernels_by_name(candidate)
    for name, kernels in _kernels_by_name(baseline).items():
        for kernel, candidate_kernel in _pair_kernels(kernels, candidate_kernels.get(name, [])):
            matches[kernel.index] = match_pair(ViewSource(baseline, kernel), ViewSource(candidate, candidate_kernel))
    matched_candidates = {match.candidate.kernel.index for match in matches.values()}
    unmatched = [kernel for kernel in baseline.kernels if kernel.index not in matches]
    return (
        [matches[index] for index in sorted(matches)],
        unmatched,
        [k for k in candidate.kernels if k.index not in matched_candidates],
    )


def _kernels_by_name(trace: Trace) -> dict[str, list[Kernel]]:
    by_name = defaultdict(list)
    for kernel in trace.kernels:
        by_name[kernel.name].append(kernel)
    return by_name


def _pair_kernels(kernels: list[Kernel], candidates: list[Kernel]) -> Iterator[tuple[Kernel, Kernel]]:
    """Yield pairs of kernels of one name: first those of the same shape, each at most once, then others in order."""
    unmatched_kernels, unmatched_candidates = [], list(candidates)
    for kernel in kernels:
        shape = kernel.grid, kernel.block
        match = next(
            (candidate for candidate in unmatched_candidates if (candidate.grid, candidate.block) == shape), None
        )
        if match is None:
            unmatched_kernels.append(kernel)
        else:
            unmatched_candidates.remove(match)
            yield kernel, match
    yield from zip(unmatched_kernels, unmatched_candidates, strict=False)
