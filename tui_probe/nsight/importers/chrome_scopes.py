"""Scopes that kernels name themselves, as ranges on streams: neighbours within the same scopes are in one range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tui_probe.nsight.importers.nsys_model import ProjectedRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tui_probe.nsight.importers.nsys_model import Kernels


def scopes(kernels: Kernels, path: NDArray[np.int64], paths: Sequence[tuple[str, ...]]) -> list[ProjectedRange]:
    """The ranges, by start, the outer first. ``path`` gives for each kernel its scopes, by position in ``paths``."""
    if len(paths) < 2:
        return []
    found: list[ProjectedRange] = []
    for queue in np.unique(kernels.queue).tolist():
        own = np.flatnonzero(kernels.queue == queue)
        codes = path[own]
        first = np.flatnonzero(np.append(True, codes[1:] != codes[:-1]))
        runs = [(own[begin:end], paths[codes[begin]]) for begin, end in zip(first, [*first[1:], len(own)], strict=True)]
        found += _of_stream(kernels, queue, runs)
    return sorted(found, key=lambda each: (each.start, each.level, -each.end))


def _of_stream(
    kernels: Kernels, queue: int, runs: list[tuple[NDArray[np.int64], tuple[str, ...]]]
) -> list[ProjectedRange]:
    """The ranges of one stream: each goes on as long as its scope and those around it do."""
    found: list[ProjectedRange] = []
    open_: list[list[NDArray[np.int64]]] = []
    before: tuple[str, ...] = ()

    def close(level: int) -> None:
        while len(open_) > level:
            found.append(_range(kernels, queue, before[len(open_) - 1], len(open_) - 1, np.concatenate(open_.pop())))

    for own, scope in runs:
        same = next((i for i, pair in enumerate(zip(before, scope, strict=False)) if pair[0] != pair[1]), None)
        close(min(len(before), len(scope)) if same is None else same)
        open_ += [[] for _ in scope[len(open_) :]]
        for parts in open_:
            parts.append(own)
        before = scope
    close(0)
    return found


def _range(kernels: Kernels, queue: int, name: str, level: int, own: NDArray[np.int64]) -> ProjectedRange:
    start, end = kernels.start[own], kernels.end[own]
    return ProjectedRange(
        name=name,
        stream=kernels.streams[queue],
        queue=queue,
        start=int(start.min()),
        end=int(end.max()),
        kernels=len(own),
        level=level,
        busy=int((end - start).sum()),
        host_start=None,
        host_end=None,
    )
