"""The server's answers, in this process: what a module is asked to be, and how errors become statuses."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tests.simgpu import ptx
from tests.simgpu.driver import KERNELS
from tui_probe.simgpu import protocol
from tui_probe.simgpu.executor import DeviceMemory, Machine
from tui_probe.simgpu.protocol import Status, pack, unpack
from tui_probe.simgpu.server import Server

BASE = 1 << 40
NUMBERS = {kind: number for number, kind in protocol.REQUESTS.items()}


@pytest.fixture
def memory() -> np.ndarray:
    return np.zeros(4096, np.uint8)


@pytest.fixture
def server(memory: np.ndarray) -> Server:
    return Server(DeviceMemory(memory, BASE), Machine(sm_count=2))


def ask(server: Server, request: protocol.Request) -> tuple[Status, protocol.Reply | protocol.Failure]:
    return server.answer(NUMBERS[type(request)], pack(request))


def load(server: Server, source: str) -> protocol.LoadReply:
    status, loaded = ask(server, protocol.LoadRequest((ptx.HEAD + source).encode()))
    assert status is Status.OK
    assert isinstance(loaded, protocol.LoadReply)
    return loaded


def launch(module: int, parameters: bytes = b"", start_cycle: int = 0) -> protocol.LaunchRequest:
    return protocol.LaunchRequest(module, 0, (1, 1, 1), (1, 1, 1), 0, start_cycle, (0, 0, 0), 0, parameters)


def test_module_is_logged_completely(server: Server) -> None:
    loaded = load(server, ptx.COUNTER)
    assert (loaded.target, loaded.kernels) == (80, ("count",))
    variables = {variable.name: variable for variable in loaded.variables}
    assert variables["counter"] == protocol.Variable(
        "counter", protocol.VariableSpace.GLOBAL, 4, 4, (5).to_bytes(4, "little")
    )
    assert (variables["table"].space, variables["table"].size, variables["table"].align) == (
        protocol.VariableSpace.CONST,
        16,
        8,
    )
    assert variables["table"].initial == b"\1\2\3" + bytes(13)


def test_a_kernel_uses_its_variables_where_they_were_placed(server: Server, memory: np.ndarray) -> None:
    loaded = load(server, ptx.COUNTER)
    places = tuple(BASE + 256 * (index + 1) for index in range(len(loaded.variables)))
    assert ask(server, protocol.PlaceRequest(loaded.module, places)) == (Status.OK, protocol.EmptyReply())
    status, executed = ask(server, launch(loaded.module))
    assert status is Status.OK
    assert isinstance(executed, protocol.LaunchReply)
    assert executed.cycles > 0
    assert executed.instructions >= 4
    offset = places[[variable.name for variable in loaded.variables].index("counter")] - BASE
    assert memory[offset] == 1  # the driver, not the server, writes initial values


def test_registers_of_text_are_estimated(server: Server) -> None:
    loaded = load(server, ptx.SHAPED)
    status, described = ask(server, protocol.DescribeRequest(loaded.module, 0))
    assert status is Status.OK
    assert isinstance(described, protocol.DescribeReply)
    assert described.registers == -1
    assert 8 <= described.estimated_registers <= 32


@pytest.mark.parametrize(
    ("image", "status"),
    [
        (b"no image at all", Status.NO_PTX),
        (b".version 8.0\n.target sm_90\n.address_size 64\n", Status.NO_PTX),
        (b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f() {", Status.INVALID_PTX),
        (b".version 99.0\n.target sm_80\n.address_size 64\n", Status.UNSUPPORTED_VERSION),
        (b".version 9.6\n.target sm_80\n.address_size 64\n", Status.UNSUPPORTED_VERSION),
        (b".version 7.9\n.target sm_80\n.address_size 64\n", Status.UNSUPPORTED_VERSION),
    ],
)
def test_images_without_ptx_for_this_gpu(server: Server, image: bytes, status: Status) -> None:
    answered, failure = ask(server, protocol.LoadRequest(image))
    assert answered is status
    assert isinstance(failure, protocol.Failure)
    assert failure.message


@pytest.mark.parametrize(
    ("source", "parameters", "status"),
    [
        (ptx.STORE_TO, (BASE + 4096).to_bytes(8, "little"), Status.ILLEGAL_ADDRESS),
        (ptx.STORE_TO, (BASE + 2).to_bytes(8, "little"), Status.MISALIGNED_ADDRESS),
        (ptx.TRAP, b"", Status.TRAP),
        (ptx.UNSUPPORTED, b"", Status.NOT_SUPPORTED),
    ],
)
def test_how_a_kernel_fails(server: Server, source: str, parameters: bytes, status: Status) -> None:
    answered, failure = ask(server, launch(load(server, source).module, parameters))
    assert answered is status
    assert isinstance(failure, protocol.Failure)
    assert failure.message


def test_unloaded_modules(server: Server) -> None:
    loaded = load(server, ptx.NOTHING)
    for request in (
        protocol.DescribeRequest(loaded.module + 1, 0),
        protocol.DescribeRequest(loaded.module, 1),
        protocol.PlaceRequest(loaded.module, (BASE,)),
    ):
        assert ask(server, request)[0] is Status.NOT_SUPPORTED
    assert ask(server, protocol.UnloadRequest(loaded.module))[0] is Status.OK
    assert ask(server, launch(loaded.module))[0] is Status.NOT_SUPPORTED


def test_a_conversation(server: Server) -> None:
    image = (KERNELS / "saxpy.ptx").read_bytes()
    body = pack(protocol.LoadRequest(image))
    request = (1).to_bytes(4, "little") + len(body).to_bytes(4, "little") + body
    replies = io.BytesIO()
    server.serve(io.BytesIO(request + request[:20]), replies)  # the second is cut off: the program has ended
    content = replies.getvalue()
    assert content[:4] == protocol.VERSION.to_bytes(4, "little")
    assert int.from_bytes(content[4:8], "little") == Status.OK
    assert int.from_bytes(content[8:12], "little") == len(content) - 12
    assert unpack(protocol.LoadReply, content[12:]).kernels == ("saxpy",)


def test_a_mistake_of_ours_is_an_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(server, ptx.NOTHING)

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("two words")

    monkeypatch.setattr("tui_probe.simgpu.executor.execute", fail)
    status, failure = ask(server, launch(loaded.module))
    assert status is Status.NOT_SUPPORTED
    messages = "the simulated GPU failed because of a bug in tui-probe: ZeroDivisionError: two words"
    assert failure == protocol.Failure(messages)
