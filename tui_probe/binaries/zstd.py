"""Zstandard frames, decompressed by Python's own module (3.14 and later) or by the package ``zstandard``.

Both take a limit: a small frame may claim any size, and a fatbin entry states the size of its content.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression import zstd

    ZstdError = zstd.ZstdError

    def content_size(frame: bytes) -> int | None:
        """Return the size that the frame states, None if it states none. Raises ZstdError."""
        return zstd.get_frame_info(frame).decompressed_size

    def decompress(frame: bytes, limit: int) -> bytes:
        """Return the content of a frame. Raises ZstdError if it is damaged, cut off or larger than ``limit`` bytes."""
        decompressor = zstd.ZstdDecompressor()
        content = decompressor.decompress(frame, max_length=limit)
        if not decompressor.eof and decompressor.decompress(b"", max_length=1):
            raise ZstdError(f"decompressed data is larger than {limit} bytes")
        if not decompressor.eof:
            raise ZstdError("the frame is cut off")
        return content

else:
    import zstandard

    ZstdError = zstandard.ZstdError

    def content_size(frame: bytes) -> int | None:
        """Return the size that the frame states, None if it states none. Raises ZstdError."""
        size = zstandard.frame_content_size(frame)
        return None if size < 0 else size

    def decompress(frame: bytes, limit: int) -> bytes:
        """Return the content of a frame. Raises ZstdError if it is damaged, cut off or larger than ``limit`` bytes."""
        return zstandard.ZstdDecompressor().decompress(frame, max_output_size=limit)
