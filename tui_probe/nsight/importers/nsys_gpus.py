"""GPUs of an sqlite export, and which of them is meant where a process speaks of its CUDA device 0.

TARGET_INFO_GPU          GPUs, with their SMs
TARGET_INFO_CUDA_DEVICE  what a process calls CUDA device ``cudaId`` is GPU ``gpuId``: CUDA_VISIBLE_DEVICES changes that
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tui_probe.nsight.importers.distinct import distinct_rows
from tui_probe.nsight.importers.nsys_model import UNKNOWN, Device, process_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tui_probe.nsight.importers.sqlite_tables import Tables

_SHORT: Final = 0xFFFF


class Gpus:
    """The GPUs of one export."""

    def __init__(self, tables: Tables) -> None:
        rows = tables.rows("TARGET_INFO_GPU", {"id": ..., "name": "", "smCount": UNKNOWN})
        self.devices = {
            number: Device(number, str(name), sms if isinstance(sms, int) and sms > 0 else None)
            for number, name, sms in rows
            if isinstance(number, int)
        }
        called = tables.rows("TARGET_INFO_CUDA_DEVICE", {"pid": UNKNOWN, "cudaId": ..., "gpuId": UNKNOWN})
        self._called = {(pid, cuda): gpu for pid, cuda, gpu in called if isinstance(gpu, int) and gpu != UNKNOWN}

    def numbers(self, processes: NDArray[Any], cuda_devices: NDArray[Any]) -> NDArray[Any]:
        """For each CUDA device of a process (nsys' id of it) the number of the GPU, as far as the file says."""
        if not self._called:
            return cuda_devices
        pairs, places = distinct_rows((processes, cuda_devices))
        return np.array([self._number(*pair) for pair in pairs], dtype=np.int32)[places]

    def _number(self, process: int, cuda_device: int) -> int:
        """The GPU, or the same number where the file does not name it."""
        identity = process_id(process)
        for named in (identity, UNKNOWN):
            if (named, cuda_device) in self._called:
                return self._called[named, cuda_device]
        # Some writers put bits of the machine right above a short process id.
        alike = {gpu for (pid, cuda), gpu in self._called.items() if cuda == cuda_device and pid == identity & _SHORT}
        return alike.pop() if len(alike) == 1 else cuda_device
