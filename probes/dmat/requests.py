"""Sectors of the request that each recorded access was part of, for pictures of where accesses do not coalesce.

A request is what the lanes of a warp access at one clock, as ``table`` defines it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.trace.result_layout import WARP_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .accesses import Part

_SECTOR_BITS: Final = np.uint64(5)


def sectors_of_requests(part: Part) -> NDArray[np.float64]:
    """For each record the distinct 32-byte sectors that its request touched (f8), in the order of the records."""
    addresses, times, shape = part.addresses(), part.times(), part.warp_shape()
    if shape is not None and len(times):
        together = times.reshape(shape)
        if (together == together[:, :1]).all():
            return _of_whole_warps((addresses >> _SECTOR_BITS).reshape(shape))
    return sectors_by_request(addresses, times, part.warps())


def lanes_of_requests(part: Part) -> NDArray[np.float64]:
    """For each record the records of its request (f8)."""
    times, shape = part.times(), part.warp_shape()
    if shape is not None and len(times):
        together = times.reshape(shape)
        if (together == together[:, :1]).all():
            return np.full(len(times), float(WARP_SIZE))
    if not len(times):
        return np.zeros(0, dtype=np.float64)
    warps = part.warps()
    order = np.lexsort((times, warps))
    request = np.append(True, (np.diff(warps[order]) != 0) | (np.diff(times[order]) != 0))
    numbers = np.cumsum(request) - 1
    found = np.empty(len(order), dtype=np.float64)
    found[order] = np.bincount(numbers)[numbers]
    return found


def sectors_by_request(
    addresses: NDArray[np.uint64], times: NDArray[Any], warps: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The same of any records, as long as all of a request are there."""
    if not len(times):
        return np.zeros(0, dtype=np.float64)
    sectors = addresses >> _SECTOR_BITS
    order = np.lexsort((sectors, times, warps))
    warps, times, sectors = warps[order], times[order], sectors[order]
    request = np.append(True, (np.diff(warps) != 0) | (times[1:] != times[:-1]))
    new = request | np.append(True, sectors[1:] != sectors[:-1])
    numbers = np.cumsum(request) - 1
    found = np.empty(len(order), dtype=np.float64)
    found[order] = np.bincount(numbers, new)[numbers]
    return found


def _of_whole_warps(sectors: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Of warps whose lanes stay together: ``sectors`` has shape (warps, lanes, records)."""
    by_request = np.sort(sectors.transpose(0, 2, 1), axis=2)
    counts = 1 + np.count_nonzero(np.diff(by_request, axis=2), axis=2)
    return np.repeat(counts[:, np.newaxis], WARP_SIZE, axis=1).astype(np.float64).reshape(-1)
