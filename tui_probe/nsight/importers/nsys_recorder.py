"""Messages of nsys about its own recording, in an sqlite export: why nothing, or not everything, was recorded.

DIAGNOSTIC_EVENT   its messages, with a severity
META_DATA_CAPTURE  its options, as names and values
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui_probe.nsight.importers.sqlite_tables import Tables

_SERIOUS: Final = frozenset({2, 3})
"""Warnings and errors; 4 are verbose messages."""
_OF_OTHERS: Final = re.compile(
    r"\b(OpenGL|Vulkan|OS runtime|OpenACC|OpenMP|OpenXR|Direct3D|DX1[12]|MPI|WDDM|ETW|NVVIDEO|cuDNN|cuBLAS|backtraces?"
    r"|IP samples?|Context switch)\b",
    re.IGNORECASE,
)
"""Messages about what is not read from a file."""
_SAID: Final = 5
"""Messages that are quoted."""


class Recorder:
    """What nsys reports of its recording, and what it was asked to record."""

    def __init__(self, tables: Tables) -> None:
        rows = tables.rows("DIAGNOSTIC_EVENT", {"severity": 0, "text": ""})
        texts = (" ".join(str(text).split()) for severity, text in rows if severity in _SERIOUS)
        self._messages = Counter(text for text in texts if text and not _OF_OTHERS.search(text))
        options = tables.rows("META_DATA_CAPTURE", {"name": "", "value": ""})
        self._options = {str(name).rpartition(":")[2]: str(value) for name, value in options}

    def notes(self) -> Iterator[str]:
        """Its messages, the first ones."""
        for text, times in [*self._messages.items()][:_SAID]:
            yield f"nsys reports: {text}" + (f" ({times} times)" if times > 1 else "")
        more = len(self._messages) - _SAID
        if more > 0:
            yield f"nsys reports {more} more {'warning' if more == 1 else 'warnings'}: table DIAGNOSTIC_EVENT has them"

    def why_nothing(self, what: str, kind: Literal["CUDA", "NVTX"]) -> str:
        """Why there are no kernels or ranges (``what``), as far as the file says; else how to record them."""
        traced = self._options.get(f"COLLECT_{kind}_TRACE")
        if traced == "true":
            return f"no {what} were recorded, although nsys traced {kind}"
        return f"no {what} were recorded: profile with nsys profile --trace=cuda,nvtx"

    def why_empty(self) -> str:
        """Why there are neither, the recorder's own reasons first."""
        said = [*self.notes()]
        why = self.why_nothing("kernels and no NVTX ranges", "CUDA")
        return f"{'; '.join(said)}; {why}" if said else why
