"""What a target under the screen writes, kept in a log by a process that neither our end nor a full disk stops."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Keeper:
    """Copies what is written to ``target_end`` to the end of ``log``.

    ``tee`` does so: it keeps reading when the log takes no more, where the target itself would fail to write.
    Without it the target writes into the log. ``limit``: bytes that ``tee`` keeps; None: all.
    """

    def __init__(self, log: Path, limit: int | None = None) -> None:
        self.log = log
        self._limit = limit
        log.touch()
        tee = shutil.which("tee")
        if tee is None:
            self.target_end = os.open(log, os.O_WRONLY | os.O_APPEND)
            self._process = None
            return
        reading, self.target_end = os.pipe()
        self._process = subprocess.Popen(
            [tee, "-a", "-i", str(log)], stdin=reading, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
            restore_signals=False,  # SIGXFSZ stays ignored: a log at its limit is one that takes no more
            preexec_fn=self._limit_files,
        )  # fmt: skip
        os.close(reading)

    def _limit_files(self) -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        if self._limit is not None and (hard == resource.RLIM_INFINITY or self._limit < hard):
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._limit, hard))

    @property
    def cut(self) -> bool:
        """Whether the log has reached its limit."""
        return self._limit is not None and self.log.stat().st_size >= self._limit

    def finish(self, seconds: float) -> bool:
        """Wait for the end of the stream, unless other processes hold it open for longer. False if some was lost."""
        if self._process is None:
            return True
        try:
            return self._process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            return True
