"""The probes that pages and screens are tested with: always the same, so that a new one changes no golden of theirs.

A view is in the bar of tabs of every kernel, a question in every summary. What a new probe adds there is shown by
its own tests in ``tests/probes``, which know all probes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tui_probe.pages.findings_page import all_questions
from tui_probe.pages.views import kinds
from tui_probe.probe_files.loading import built_in_files

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDERS: Final = frozenset(
    (
        "barrier_wait", "block_sched", "divergence", "dmat", "gmem_bytes", "gmem_sectors", "inst_mix", "nan_check",
        "program_progress", "smem_conflicts", "tensorop_count", "warp_progress",
    )
)  # fmt: skip


@contextmanager
def fixed_probes() -> Iterator[None]:
    """Meanwhile no other built-in probe is known in this process."""
    files = built_in_files()
    known = dict(files)
    for name, file in known.items():
        if file.parent.name not in FOLDERS:
            del files[name]
    _forget()
    yield
    files.clear()
    files.update(known)
    _forget()


def _forget() -> None:
    """Forget the contents of the known probes that were read."""
    kinds.cache_clear()
    all_questions.cache_clear()
