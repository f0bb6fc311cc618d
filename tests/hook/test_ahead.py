"""Images that the program loads are sent to the engine, which prepares their kernels ahead."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Host

PTX = b".version 8.0\n.target sm_80\n"
LOAD = "context()\nmodule()\n"


class Images:
    """The engine's socket for images."""

    def __init__(self, engine: Path) -> None:
        self.folder = engine.parent
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"{engine}.ahead")
        self._socket.setblocking(False)

    def sent(self) -> list[tuple[bytes, str]]:
        """The bytes and the architecture of each image."""
        images = []
        while True:
            try:
                path, architecture = self._socket.recv(4096).decode().split("\t")
            except BlockingIOError:
                return images
            images.append((Path(path).read_bytes(), architecture))

    def files(self) -> list[str]:
        return [path.name for path in self.folder.glob("*.image.*")]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def images(host: Host) -> Iterator[Images]:
    assert host.engine is not None
    images = Images(host.engine.path)
    yield images
    images.close()


def test_loaded_image_is_sent_before_any_launch(host: Host, images: Images) -> None:
    run = host.python(LOAD)
    assert run.status == 0, run.stderr
    assert images.sent() == [(PTX, "sm_90")]
    assert run.directories == [], "nothing was launched"


def test_equal_images_are_sent_once(host: Host, images: Images) -> None:
    more = f"module()\nmodule({PTX + b'// other'!r})\ncall('cuModuleUnload', module())\n"
    assert host.python(LOAD + more).status == 0
    assert [image for image, _ in images.sent()] == [PTX, PTX + b"// other"]


def test_forked_child_sends_its_own_images(host: Host, images: Images) -> None:
    child = f"if not os.fork():\n    context()\n    module({PTX + b'// child'!r})\n    os._exit(0)\nos.wait()\n"
    assert host.python("module = module\n" + child + LOAD).status == 0
    assert {image for image, _ in images.sent()} == {PTX, PTX + b"// child"}


@pytest.mark.parametrize("image", [PTX + b"/" * (17 << 20), b"no image", PTX[:9]])
def test_large_and_unknown_images_are_not_sent(host: Host, images: Images, image: bytes) -> None:
    file = images.folder / "image"
    file.write_bytes(image)
    script = f"context()\ntry:\n    module(open({str(file)!r}, 'rb').read())\nexcept DriverError:\n    pass\n"
    assert host.python(script).status == 0
    assert [len(sent) for sent, _ in images.sent()] in ([], [len(PTX[:9])])


def test_engine_without_the_socket_gets_no_file(host: Host, tmp_path: Path) -> None:
    assert host.python(LOAD).status == 0
    assert not list(tmp_path.glob("*.image.*"))


def test_full_queue_leaves_no_file_and_does_not_block(host: Host, images: Images) -> None:
    queue = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())
    count = min(queue + 20, 200)
    script = f"from pathlib import Path\ncontext()\nfor n in range({count}):\n    module(PTX + b'//%d' % n)\n"
    assert host.python(script).status == 0
    names = images.files()
    assert len(images.sent()) == len(names) <= count
    assert os.getpid() not in {int(name.split(".")[-2]) for name in names}
