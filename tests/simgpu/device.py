"""A device to run kernels on in tests of the executor: memory, and launches with NumPy arrays as parameters."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tui_probe.ptx.parser import parse
from tui_probe.simgpu.executor import Checker, DeviceMemory, Execution, Kernel, Machine, compile_kernel, execute
from tui_probe.simgpu.modules import ModuleVariable, module_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui_probe.ptx.tree import Module

BASE = 0x7F00_0000_0000
KERNELS = Path(__file__).parent / "kernels"
HEADER = ".version 7.8\n.target sm_80\n.address_size 64\n"


@functools.cache
def module(name: str) -> Module:
    """A module of the folder ``kernels``."""
    return parse((KERNELS / f"{name}.ptx").read_text())


@functools.cache
def kernel(name: str, entry: str) -> Kernel:
    """A kernel of the folder ``kernels``."""
    return compile_kernel(module(name), entry)


@functools.cache
def compiled(source: str) -> Kernel:
    """The first kernel of a PTX text, which may lack the header."""
    tree = parse(source if ".version" in source else HEADER + source)
    return compile_kernel(tree, tree.entries()[0].name)


class Device:
    """Four megabytes of device memory."""

    def __init__(self, size: int = 1 << 22, machine: Machine | None = None) -> None:
        self.buffer = np.zeros(size, np.uint8)
        self.memory = DeviceMemory(self.buffer, BASE)
        self.machine = machine or Machine()
        self.variables: dict[str, int] = {}
        self.checker: Checker | None = None
        self._top = 0

    def allocate(self, size: int) -> int:
        """The address of ``size`` new bytes."""
        start = self._top
        self._top += -(-max(size, 1) // 256) * 256
        assert self._top <= len(self.buffer)
        return BASE + start

    def upload(self, values: Any) -> int:
        """The address of a copy of an array."""
        raw = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        address = self.allocate(len(raw))
        self.buffer[address - BASE : address - BASE + len(raw)] = raw
        return address

    def download(self, address: int, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """An array of the shape and type of ``like`` from device memory."""
        start = address - BASE
        raw = self.buffer[start : start + like.nbytes].copy()
        return np.frombuffer(raw, like.dtype).reshape(like.shape)

    def load_variables(self, tree: Module) -> list[ModuleVariable]:
        """Places the module's variables as a driver does."""
        variables = module_variables(tree)
        for variable in variables:
            self.variables[variable.name] = self.upload(np.frombuffer(variable.initial, np.uint8))
        for variable in variables:
            for relocation in variable.relocations:
                start = self.variables[variable.name] - BASE + relocation.offset
                target = self.variables[relocation.symbol] + relocation.addend
                self.buffer[start : start + 8] = np.frombuffer(target.to_bytes(8, "little"), np.uint8)
        return variables

    def launch(
        self,
        function: Kernel,
        *arguments: Any,
        grid: Sequence[int] = (1,),
        block: Sequence[int] = (32,),
        shared: int = 0,
        start_cycle: int = 0,
        cluster: tuple[int, int, int] = (0, 0, 0),
        workspace: int = 0,
    ) -> Execution:
        """Runs a kernel. Arguments are bytes or NumPy scalars; arrays are uploaded first, and updated after."""
        parameters = bytearray(function.parameter_bytes)
        uploaded = []
        for argument, parameter in zip(arguments, function.parameters, strict=True):
            value = argument
            if isinstance(argument, np.ndarray):
                value = np.uint64(self.upload(argument))
                uploaded.append((argument, int(value)))
            raw = value if isinstance(value, bytes) else value.tobytes()
            assert len(raw) == parameter.size
            parameters[parameter.offset : parameter.offset + parameter.size] = raw
        execution = execute(
            function,
            memory=self.memory,
            grid=_extents(grid),
            block=_extents(block),
            dynamic_shared_bytes=shared,
            parameters=bytes(parameters),
            variables=self.variables,
            machine=self.machine,
            start_cycle=start_cycle,
            cluster=cluster,
            workspace=workspace,
            checker=self.checker,
        )
        for array, address in uploaded:
            array[...] = self.download(address, array)
        return execution


def _extents(given: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


def evaluate(
    instructions: str, inputs: Sequence[np.ndarray[Any, Any]], output: np.dtype[Any], uniform: str = ""
) -> np.ndarray[Any, Any]:
    """Return ``%d`` after PTX ``instructions`` for each element of ``inputs``, which are in ``%a``, ``%b``, ….

    Registers are untyped, of the width of the arrays; a boolean array is a predicate. ``%p0`` to ``%p3`` and
    ``%t0`` to ``%t3`` (32 bits) may be used freely. The inputs named in ``uniform`` come from a parameter: their first
    element for all threads.
    """
    names = "abcef"[: len(inputs)]
    kinds = tuple(array.dtype.str for array in inputs)
    count = len(inputs[0])
    result = np.zeros(count, np.uint8 if output == np.bool_ else output)
    arrays = [np.ascontiguousarray(array.view(np.uint8) if array.dtype == np.bool_ else array) for array in inputs]
    arguments = [array[0] if name in uniform else array for name, array in zip(names, arrays, strict=True)]
    function = compiled(evaluation(instructions, tuple(zip(names, kinds, strict=True)), output.str, uniform))
    Device().launch(function, result, *arguments, np.uint32(count), grid=(-(-count // 64),), block=(64,))
    return result.view(output)


@functools.cache
def evaluation(instructions: str, inputs: tuple[tuple[str, str], ...], output: str, uniform: str = "") -> str:
    """The kernel that ``evaluate`` launches: its parameters are the result, the inputs by name and type, a count."""
    parameters = [".param .u64 out"]
    body = [".reg .pred %p<4>, %outside;", ".reg .b32 %t<4>, %index, %count, %block;", ".reg .b64 %address;"]
    body += [_declaration(name, kind) for name, kind in (*inputs, ("d", output))]
    body += ["mov.u32 %index, %tid.x;", "mov.u32 %block, %ctaid.x;", "mad.lo.u32 %index, %block, 64, %index;"]
    body += ["ld.param.u32 %count, [count];", "setp.ge.u32 %outside, %index, %count;", "@%outside ret;"]
    for name, kind in inputs:
        if name in uniform:
            parameters.append(f".param .b{_bits(kind)} {name}_in")
            body.append(_load(name, kind, "param", f"{name}_in"))
        else:
            parameters.append(f".param .u64 {name}_in")
            body += [f"ld.param.u64 %address, [{name}_in];", _element_address(kind), _load(name, kind)]
    body += [instructions, "ld.param.u64 %address, [out];", _element_address(output), _store(output), "ret;"]
    parameters.append(".param .u32 count")
    return f".visible .entry evaluate({', '.join(parameters)})\n{{\n" + "\n".join(body) + "\n}\n"


def _bits(kind: str) -> int:
    return 8 * np.dtype(kind).itemsize


def _declaration(name: str, kind: str) -> str:
    if kind == "|b1":
        return f".reg .pred %{name}; .reg .b16 %{name}_byte;"
    return f".reg .b{max(_bits(kind), 16)} %{name};"


def _element_address(kind: str) -> str:
    return f"mad.wide.u32 %address, %index, {_bits(kind) // 8}, %address;"


def _load(name: str, kind: str, space: str = "global", address: str = "%address") -> str:
    if kind == "|b1":
        return f"ld.{space}.u8 %{name}_byte, [{address}]; setp.ne.u16 %{name}, %{name}_byte, 0;"
    return f"ld.{space}.b{_bits(kind)} %{name}, [{address}];"


def _store(kind: str) -> str:
    if kind == "|b1":
        return "selp.u16 %d_byte, 1, 0, %d; st.global.u8 [%address], %d_byte;"
    return f"st.global.b{_bits(kind)} [%address], %d;"
