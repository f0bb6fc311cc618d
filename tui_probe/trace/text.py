"""Bytes of a trace as text."""

from __future__ import annotations


def text_of(data: bytes) -> str:
    """Bytes of a trace as text that can always be encoded again, printed and put into JSON."""
    return data.decode("utf-8", "backslashreplace")
