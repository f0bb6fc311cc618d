"""Modules that a program has loaded, and their kernels, compiled when first needed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from tui_probe.errors import PtxError, SimulationError
from tui_probe.ptx.parser import parse
from tui_probe.simgpu.cubin import register_counts
from tui_probe.simgpu.device_runtime import with_runtime
from tui_probe.simgpu.executor import (
    DeviceMemory,
    Kernel,
    ModuleVariable,
    compile_kernel,
    function_addresses,
    module_variables,
)
from tui_probe.simgpu.linking import ptx_of
from tui_probe.simgpu.register_estimate import estimate_registers

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Module


LAST_VERSIONS: Final = {1: 5, 2: 3, 3: 2, 4: 3, 5: 1, 6: 5, 7: 8, 8: 8, 9: 5}
"""The last PTX version of each major one, as of CUDA 13.5."""


class PtxVersionError(PtxError):
    """PTX of a version that is not known, and may mean something else."""


def _refuse_unknown_version(module: Module) -> None:
    major, minor = module.version
    if minor > LAST_VERSIONS.get(major, -1):
        newest = max(LAST_VERSIONS.items())
        raise PtxVersionError(
            f"unsupported .version {major}.{minor}; the newest that is known is {newest[0]}.{newest[1]}"
        )


@dataclass(slots=True)
class LoadedModule:
    """PTX out of an image. ``registers`` are those of the image's machine code, by kernel, where it has some."""

    tree: Module
    names: tuple[str, ...]
    variables: tuple[ModuleVariable, ...]
    registers: dict[str, int]
    addresses: dict[str, int] = field(default_factory=dict)
    compiled: dict[int, Kernel] = field(default_factory=dict)

    @classmethod
    def from_image(cls, image: bytes, compute_capability: int) -> LoadedModule:
        """The module for a GPU of a compute capability, 80 for sm_80.

        Raises ImageError for an image without PTX for it, PtxError for PTX that cannot be read or is of a version that
        is not known.
        """
        tree = with_runtime(parse(ptx_of(image, compute_capability)))
        _refuse_unknown_version(tree)
        names = tuple(entry.name for entry in tree.entries())
        return cls(tree, names, tuple(module_variables(tree)), register_counts(image))

    @property
    def target(self) -> int:
        """80 for ``.target sm_80``."""
        match = re.search(r"sm_(\d+)", self.tree.target)
        return int(match[1]) if match else 0

    def place(self, addresses: tuple[int, ...], memory: DeviceMemory) -> None:
        """Give each variable its address. Where its initial value holds an address, that is written to ``memory``."""
        if len(addresses) != len(self.variables):
            raise SimulationError(f"{len(addresses)} addresses for {len(self.variables)} variables")
        self.addresses = dict(zip((variable.name for variable in self.variables), addresses, strict=True))
        symbols = function_addresses(self.tree) | self.addresses
        for variable, address in zip(self.variables, addresses, strict=True):
            for relocation in variable.relocations:
                if relocation.symbol not in symbols:
                    raise SimulationError(
                        f"the variable {variable.name} refers to {relocation.symbol}, which is not here"
                    )
                value = symbols[relocation.symbol] + relocation.addend
                place = np.array([address + relocation.offset], np.uint64)
                memory.scatter(place, np.array([value], np.uint64))

    def estimated_registers(self, index: int) -> int:
        """An estimate of the registers of the kernel at ``index`` of ``names``."""
        return estimate_registers(self.tree, self.tree.entries()[index])

    def kernel(self, index: int) -> Kernel:
        """The kernel at ``index`` of ``names``. Raises SimulationError for PTX that the GPU does not execute."""
        if index >= len(self.names):
            raise SimulationError(f"kernel {index} of {len(self.names)}")
        if index not in self.compiled:
            self.compiled[index] = compile_kernel(self.tree, self.names[index])
        return self.compiled[index]
