"""Resources of a kernel without and with the probe, by ptxas and by the driver.

ptxas reports registers and spills of what it assembled; the driver reports what it loaded, and is the only source in
SASS mode.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from tui_probe.trace.kernel_status import KernelStatus

if TYPE_CHECKING:
    from tui_probe.trace.kernel_files import Resources
    from tui_probe.trace.launch_events import FunctionResources


class KernelResources(KernelStatus):
    """Registers, spills, shared and local memory of a kernel, without and with the probe.

    ``pruned`` is the kernel as ptxas assembled it without the probe.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def driver_original(self) -> FunctionResources | None:
        """Resources of the original function by the driver."""

    @property
    @abstractmethod
    def shared_dynamic(self) -> int | None:
        """Dynamic shared memory of the last launch, in bytes per block."""

    @property
    def registers_pruned(self) -> int | None:
        """Registers per thread before probing: ptxas' number for the pruned kernel, else the driver's (original)."""
        if (pruned := self._pruned) is not None:
            return pruned.registers
        return None if self.driver_original is None else self.driver_original.registers

    @property
    def registers_probed(self) -> int | None:
        if self.status != "probed":
            return None
        if (probed := self.process_log.probed) is not None:
            return probed.registers
        return None if self.outcome.function is None else self.outcome.function.registers

    @property
    def spills_pruned(self) -> int | None:
        """Spill stores + spill loads before probing, in bytes per thread."""
        return None if (pruned := self._pruned) is None else pruned.spill_bytes

    @property
    def spills_probed(self) -> int | None:
        probed = self.process_log.probed if self.status == "probed" else None
        return None if probed is None else probed.spill_bytes

    @property
    def static_shared(self) -> int | None:
        """Static shared memory of the original in bytes per block: as the driver says, else ptxas."""
        driver = self.driver_original
        return _static_shared(self._pruned) if driver is None or driver.shared is None else driver.shared

    @property
    def static_shared_probed(self) -> int | None:
        """Static shared memory of the probed kernel in bytes; None if unknown."""
        if self.outcome.function is not None and self.outcome.function.shared is not None:
            return self.outcome.function.shared
        return _static_shared(self.process_log.probed) if self.status == "probed" else None

    @property
    def shared(self) -> int | None:
        """Shared memory in bytes per block: static and, of the last launch, dynamic."""
        static = self.static_shared
        return None if static is None else static + (self.shared_dynamic or 0)

    @property
    def local_original(self) -> int | None:
        """Local memory of the original in bytes per thread (stack and spills), as the driver says."""
        return None if self.driver_original is None else self.driver_original.local

    @property
    def local_probed(self) -> int | None:
        return None if self.outcome.function is None else self.outcome.function.local

    @property
    def blocks_per_sm(self) -> int | None:
        """Resident blocks per SM of the original, by the driver's occupancy calculator at its first block size."""
        return None if self.driver_original is None else self.driver_original.blocks

    @property
    def blocks_per_sm_probed(self) -> int | None:
        return None if self.outcome.function is None else self.outcome.function.blocks

    @property
    def _pruned(self) -> Resources | None:
        return self.process_log.pruned if self.status in ("probed", "failed") else None


def _static_shared(resources: Resources | None) -> int | None:
    return None if resources is None else resources.shared_bytes
