"""The server of one process that uses the simulated driver: answers requests until the process ends."""

from __future__ import annotations

import gc
import mmap
import os
import select
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from tui_probe.errors import ImageError, ProbeError, PtxError, SimulationError
from tui_probe.simgpu import executor
from tui_probe.simgpu.executor import DeviceMemory, Machine
from tui_probe.simgpu.executor.checks.checker import fault_texts
from tui_probe.simgpu.modules import LoadedModule, PtxVersionError, link
from tui_probe.simgpu.protocol import (
    MEMORY_DESCRIPTOR,
    SOCKET_DESCRIPTOR,
    U32,
    VERSION,
    DescribeReply,
    DescribeRequest,
    EmptyReply,
    Failure,
    LaunchReply,
    LaunchRequest,
    LinkReply,
    LinkRequest,
    LoadReply,
    LoadRequest,
    Parameter,
    PlaceRequest,
    Reply,
    Request,
    RunningFindings,
    Status,
    UnloadRequest,
    Variable,
    VariableSpace,
    decode_request,
    pack,
)

if TYPE_CHECKING:
    from tui_probe.ptx.tree import Module
    from tui_probe.simgpu.executor.checks.accesses import Fault

_REQUEST_HEAD: Final = struct.Struct("<II")
"""Kind of a request, and bytes of its body."""
_REPORT_SECONDS: Final = 0.1
"""Pause between reports of a launch that runs. The driver waits longer before it reports one as stuck."""
_INTERNAL_ERROR: Final = "the simulated GPU failed because of a bug in tui-probe"
STATUSES: Final[tuple[tuple[type[ProbeError], Status], ...]] = (
    (executor.MisalignedAddressError, Status.MISALIGNED_ADDRESS),
    (executor.MemoryFaultError, Status.ILLEGAL_ADDRESS),
    (executor.KernelAssertionError, Status.ASSERT),
    (executor.AbortError, Status.TRAP),
    (executor.DeadlockError, Status.DEADLOCK),
    (PtxVersionError, Status.UNSUPPORTED_VERSION),
    (ImageError, Status.NO_PTX),
    (PtxError, Status.INVALID_PTX),
    (ProbeError, Status.NOT_SUPPORTED),
)
"""Status by class of the error. The first that fits counts: a misaligned address is a memory fault, too."""
RARE_COLLECTIONS: Final = (50_000, 10, 10)
"""Thresholds of garbage collection, by default 700 new objects: a compiled kernel has thousands, and they stay."""


class Server:
    """The modules that a process has loaded, and what executes their kernels. ``is_checked``: their accesses, too."""

    def __init__(self, memory: executor.DeviceMemory, machine: executor.Machine, is_checked: bool = False) -> None:
        self._checker = executor.Checker(memory) if is_checked else None
        self._memory = memory
        self._machine = machine
        self._modules: dict[int, LoadedModule] = {}
        self._last_module = 0
        self._last_launch: tuple[str, Module] | None = None
        self._is_running = threading.Event()
        self._send_lock = threading.Lock()

    def serve(self, requests: BinaryIO, replies: BinaryIO) -> None:
        """Answer requests until they end."""
        replies.write(U32.write(VERSION))
        replies.flush()
        if self._checker is not None:
            threading.Thread(target=self._report_running, args=(self._checker, replies), daemon=True).start()
        while len(header := requests.read(_REQUEST_HEAD.size)) == _REQUEST_HEAD.size:
            kind, length = _REQUEST_HEAD.unpack(header)
            body = requests.read(length)
            if len(body) < length:
                return
            status, answer = self.answer(kind, body)
            with self._send_lock:
                self._is_running.clear()
                _send(replies, status, answer)

    def _report_running(self, checker: executor.Checker, replies: BinaryIO) -> None:
        """Send the findings of the launch that runs whenever there are others: it may never end."""
        sent_faults: list[Fault] = []
        while self._is_running.wait():
            time.sleep(_REPORT_SECONDS)
            with self._send_lock:
                faults = checker.faults_so_far()
                if self._last_launch is not None and self._is_running.is_set() and faults != sent_faults:
                    sent_faults = faults
                    try:
                        _send(replies, Status.RUNNING, RunningFindings(fault_texts(faults, *self._last_launch)))
                    except OSError:
                        return  # the program has ended; so does this process

    def answer(self, kind: int, body: bytes) -> tuple[Status, Reply | Failure]:
        """The reply to one request, given as its kind and its body."""
        try:
            return Status.OK, self._perform(decode_request(kind, body))
        except ProbeError as error:
            status = next(status for kind_of_error, status in STATUSES if isinstance(error, kind_of_error))
            printf_output = error.printf_output if isinstance(error, SimulationError) else b""
            return status, Failure(str(error), printf_output, self._take_findings())
        except Exception as error:  # noqa: BLE001  the program's stderr is not a place for a traceback
            return Status.NOT_SUPPORTED, Failure(f"{_INTERNAL_ERROR}: {type(error).__name__}: {error}", b"")

    def _perform(self, request: Request) -> Reply:
        match request:
            case LoadRequest():
                return self._load(request.image)
            case PlaceRequest():
                self._find_module(request.module).place_variables(request.addresses, self._memory)
                return EmptyReply()
            case DescribeRequest():
                return self._describe(request)
            case LaunchRequest():
                return self._launch(request)
            case UnloadRequest():
                self._modules.pop(request.module, None)
                return EmptyReply()
            case LinkRequest():
                return LinkReply(link(request.images, self._machine.compute_capability))

    def _find_module(self, number: int) -> LoadedModule:
        if number not in self._modules:
            raise SimulationError(f"no module {number} is loaded")
        return self._modules[number]

    def _load(self, image: bytes) -> LoadReply:
        module = LoadedModule.from_image(image, self._machine.compute_capability)
        self._last_module += 1
        self._modules[self._last_module] = module
        variables = tuple(
            Variable(
                variable.name,
                VariableSpace.CONST if variable.space == "const" else VariableSpace.GLOBAL,
                variable.size,
                variable.align,
                variable.initial,
            )
            for variable in module.variables
        )
        return LoadReply(self._last_module, module.target, module.names, variables)

    def _describe(self, request: DescribeRequest) -> DescribeReply:
        module = self._find_module(request.module)
        kernel = module.kernel(request.kernel)
        return DescribeReply(
            static_shared_bytes=kernel.static_shared_bytes,
            local_bytes=kernel.local_bytes,
            max_threads=kernel.max_threads or executor.MAX_THREADS,
            registers=module.registers.get(module.names[request.kernel], -1),
            estimated_registers=module.estimated_registers(request.kernel),
            cluster=kernel.cluster,
            parameters=tuple(Parameter(parameter.offset, parameter.size) for parameter in kernel.parameters),
        )

    def _launch(self, request: LaunchRequest) -> LaunchReply:
        module = self._find_module(request.module)
        kernel = module.kernel(request.kernel)
        if self._checker is not None:
            self._checker.apply_changes((change.kind, change.address, change.size) for change in request.changes)
            self._last_launch = (kernel.name, module.tree)
            self._is_running.set()
        execution = executor.execute(
            kernel,
            memory=self._memory,
            grid=request.grid,
            block=request.block,
            dynamic_shared_bytes=request.dynamic_shared_bytes,
            parameters=request.parameters,
            variables=module.addresses,
            machine=self._machine,
            start_cycle=request.start_cycle,
            cluster=request.cluster,
            workspace=request.workspace,
            checker=self._checker,
        )
        return LaunchReply(execution.cycles, execution.instructions, execution.printf_output, self._take_findings())

    def _take_findings(self) -> tuple[str, ...]:
        """The findings of the last launch, as JSON."""
        if self._checker is None or self._last_launch is None:
            return ()
        return self._checker.take_texts(*self._last_launch)


def _send(replies: BinaryIO, status: Status, message: object) -> None:
    content = pack(message)
    replies.write(U32.write(status) + U32.write(len(content)) + content)
    replies.flush()


def serve_process(setup: str) -> None:
    """Serve the driver at the other end of the socket. ``setup`` is the server's argument (see ``protocol``)."""
    numbers = {name: int(value) for name, _, value in (part.partition("=") for part in setup.split(","))}
    address, size = numbers.pop("memory_address"), numbers.pop("memory_bytes")
    is_checked = bool(numbers.pop("checked", 0))
    gc.freeze()
    gc.set_threshold(*RARE_COLLECTIONS)
    mapping = mmap.mmap(MEMORY_DESCRIPTOR, size, mmap.MAP_SHARED)
    memory = DeviceMemory(np.frombuffer(mapping, np.uint8), address)
    with socket.socket(fileno=SOCKET_DESCRIPTOR) as connection:
        threading.Thread(target=exit_when_closed, args=(connection,), daemon=True).start()
        try:
            Server(memory, Machine(**numbers), is_checked).serve(connection.makefile("rb"), connection.makefile("wb"))
        except OSError:
            os._exit(0)  # the program has ended, and takes no answers: no one is there to tell


def exit_when_closed(connection: socket.socket) -> None:
    """End this process when the other end of ``connection`` is closed, in the middle of a kernel too."""
    poll = select.poll()
    poll.register(connection, 0)  # no events but the hang-up, which is always told
    poll.poll()
    os._exit(0)
