"""Zstandard frames, with whichever implementation this Python has."""

from __future__ import annotations

import pytest

from tests.ptx.images import zstd_frame
from tui_probe.binaries.fatbin import ZstdError, zstd_content_size, zstd_decompress

CONTENT = b".version 8.0\n" * 4000


def test_decompress_returns_content_and_its_stated_size() -> None:
    frame = zstd_frame(CONTENT)
    assert zstd_content_size(frame) == len(CONTENT)
    assert zstd_decompress(frame, len(CONTENT)) == CONTENT


@pytest.mark.parametrize("limit", [1, len(CONTENT) - 1])
def test_decompress_refuses_content_over_the_limit(limit: int) -> None:
    """The frame states no size, so that only the limit bounds what it takes."""
    frame = bytes.fromhex("28b52ffd0058") + _block(CONTENT)
    with pytest.raises(ZstdError):
        zstd_decompress(frame, limit)


@pytest.mark.parametrize("frame", [b"", b"no frame", zstd_frame(CONTENT)[:-4]], ids=["empty", "foreign", "cut off"])
def test_decompress_refuses_damaged_frames(frame: bytes) -> None:
    with pytest.raises(ZstdError):
        zstd_decompress(frame, len(CONTENT))


def _block(content: bytes) -> bytes:
    """One raw block, the last of its frame: RFC 8878, 3.1.1.2."""
    return (len(content) << 3 | 1).to_bytes(3, "little") + content
