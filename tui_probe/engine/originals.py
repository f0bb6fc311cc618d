"""The images that kernels come from, each read and parsed once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tui_probe.engine.shared_files import link_to, put
from tui_probe.ptx.images import HeldPtx, choose_ptx, held_ptx, image_kind
from tui_probe.ptx.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

    from tui_probe.ptx.tree import Module

_MAX_IMAGE_BYTES: Final = 256 << 20


@dataclass(slots=True)
class Original:
    """One PTX module of an image. ``written`` is where its text already lies on disk.

    Bodies are parsed when a kernel needs them: ``lock`` is for those who may be the first.
    """

    text: str
    module: Module
    written: Path | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, path: Path) -> None:
        """Put the text at ``path``; a copy that exists is linked to, for an image may hold hundreds of kernels."""
        if self.written is not None and link_to(self.written, path):
            return
        put(path, self.text.encode())
        self.written = path


@dataclass(slots=True)
class _Image:
    kind: str
    size: int
    held: list[HeldPtx]
    parsed: dict[int, Original] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Originals:
    """Finds the PTX of kernels and keeps what it parsed of the images last used."""

    def __init__(self) -> None:
        self._images: OrderedDict[bytes, _Image] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, image: bytes, entry: str, arch: int) -> tuple[Original, str]:
        """The PTX module with the kernel ``entry`` for a device of ``arch`` (90), and how it was found.

        Raises ImageError if there is none, PtxError if it cannot be parsed.
        """
        known = self._image(image)
        with known.lock:
            text = choose_ptx(known.held, entry, arch)
            original = known.parsed.get(id(text))
            if original is None:
                original = known.parsed[id(text)] = Original(text.text, parse(text.text))
        return original, f"{known.kind} of {known.size} bytes: PTX for sm_{text.arch}, {len(text.text)} characters"

    def _image(self, image: bytes) -> _Image:
        with self._lock:
            known = self._images.get(image)
            if known is None:
                known = self._images[image] = _Image(image_kind(image), len(image), held_ptx(image))
                self._forget()
            self._images.move_to_end(image)
            return known

    def _forget(self) -> None:
        """Let go of the images used longest ago, except the last."""
        while len(self._images) > 1 and sum(image.size for image in self._images.values()) > _MAX_IMAGE_BYTES:
            self._images.popitem(last=False)
