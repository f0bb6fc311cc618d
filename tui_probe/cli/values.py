"""Options that need reading: sizes in bytes and ranges of launches."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from tui_probe.launcher.control import NO_LIMIT
from tui_probe.launcher.options import ALL, AUTO
from tui_probe.probe_files.choices import compact_sample

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size(text: str) -> int:
    """``512M``, ``4G``, ``1.5G``, ``1048576``, ``64KiB``: a positive number of bytes, units of 1024."""
    from decimal import Decimal  # which takes longer to read than the rest, and few runs give a size

    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:I?B)?", text.strip().upper())
    value = int(Decimal(match[1]) * UNITS[match[2]]) if match else 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write 512M, 4G or a number of bytes")
    return value


def limit(text: str) -> int:
    """A size, which may be 0, or ``none``, which is ``NO_LIMIT``."""
    try:
        return _unlimited(text, lambda: 0 if text.strip() == "0" else size(text))
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; 0 for nothing, none for no limit") from error


def count(text: str) -> int:
    """``2000``, ``0``, or ``none``, which is ``NO_LIMIT``."""
    if not re.fullmatch(r"\d{1,15}|none", text.strip().lower()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; write 2000; 0 for nothing, none for no limit")
    return _unlimited(text, lambda: int(text))


def _unlimited(text: str, otherwise: Callable[[], int]) -> int:
    return NO_LIMIT if text.strip().lower() == "none" else otherwise()


def seconds(text: str) -> float:
    """``30s``, ``500ms``, ``2m``, ``1h``, ``1.5``: a positive time, in seconds if it has no unit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?", text.strip().lower())
    value = float(match[1]) * SECONDS[match[2] or "s"] if match else 0.0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write 30s, 500ms or 2m")
    return value


def min_free(text: str) -> str:
    """``10G``, ``3%``, ``2G,5%``: what stays free of a disk, in the hook's own words; ``0``: nothing."""
    parts = text.replace(" ", "").split(",")
    if parts == ["0"]:
        return "0"
    shares = [part for part in parts if re.fullmatch(r"\d{1,2}%", part)]
    sizes = [part for part in parts if part not in shares]
    if len(shares) > 1 or len(sizes) > 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size and a share of the disk; write 10G, 3%, 2G,5% or 0")
    return ",".join([*(str(size(part)) for part in sizes), *shares])


def launches(text: str) -> str:
    """``0-9,20``: indices of a kernel's launches, from 0, in ranges that do not run backwards; ``auto``, ``all``."""
    compact = re.sub(r"\s+", "", text)
    if compact in (AUTO, ALL):
        return compact
    for part in compact.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None or (match[2] and int(match[2]) < int(match[1])):
            raise argparse.ArgumentTypeError(
                f"{text!r} does not name launches; write 0-9,20 for the first ten and one more, auto, or all"
            )
    return compact


def sample(text: str) -> str:
    """``1/16`` one block in 16, ``0-131`` those of a range, ``64`` as many spread over the grid."""
    try:
        return compact_sample(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def names(text: str) -> str:
    """``a:b``: parts of kernel names, none of them empty."""
    if not all(text.split(":")):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty part; write a:b for names that contain a or b")
    return text
