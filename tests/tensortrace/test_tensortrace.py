"""Tensors that a program names: which are written, in which words, and what the program does not notice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.tensortrace.programs import interpreters, run
from tui_probe.trace.model import Trace
from tui_probe.trace.tensors import read_tensors

PYTHONS = pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).name)
BLOCK = """
import torch
from neutrino.utils.tensortrace import TensorTrace, tensortrace

before = torch.Tensor(0x9000, (7,))
def forward(q, k, scale):
    o = torch.Tensor(0x3000, (4, 8))
    torch.use(q, k, o)
    return o

with TensorTrace() as t:
    q = torch.Tensor(0x1000, (2, 4, 8))
    k = torch.nn.Parameter(0x2000, (4, 8))
    host = torch.OnHost(0x4000, (4, 8))
    launch()
    forward(q, k, 0.5)
    last = torch.Tensor(0x5000, (3,))
after = torch.Tensor(0xa000, (7,))
torch.use(after)
"""


@PYTHONS
def test_the_tensors_of_a_block(tmp_path: Path, python: str) -> None:
    begun = time.time_ns()
    ran = run(tmp_path, BLOCK, tensors=False, python=python)
    assert (ran.status, ran.stdout, ran.stderr) == (0, "", "")
    assert {*ran.names} == {"before", "q", "k", "o", "last"}
    (lines,) = ran.traces
    (query,) = (fields for fields in lines if fields[5:7] == ["q", "<module>"])
    assert begun < int(query[1]) < time.time_ns()
    assert query[2:5] == ["torch.Size([2, 4, 8])", "128", str(0x1000)]
    assert query[7].startswith(f"{tmp_path}/program.py:")
    assert query[8:] == ["torch.float16", "2", "(32, 8, 1)", str(0x1000)]
    assert ["o", "forward"] in [fields[5:7] for fields in lines]


@PYTHONS
def test_a_decorated_function(tmp_path: Path, python: str) -> None:
    source = """
import torch
from tui_probe.tensortrace import TensorTrace, tensortrace
launch()
@TensorTrace()
def one(x): return x
@tensortrace
def other(y): return one(y)
made = torch.Tensor(0x1000, (4,))
assert other(made) is one(made) is made
"""
    source = source.replace("from tui_probe.", "from neutrino.utils.")
    ran = run(tmp_path, source, tensors=False, python=python)
    assert ran.stderr == ""
    assert {"x", "y"} <= {*ran.names}


@PYTHONS
def test_a_whole_program_and_its_children(tmp_path: Path, python: str) -> None:
    source = """
import cupy, jax, sys, threading, torch
if sys.argv[1:] == ["child"]:
    inner = torch.Tensor(0x7000, (4,))
    launch()
else:
    import subprocess
    a, c, j = torch.Tensor(0x1000, (4,)), cupy.ndarray(), jax.array.ArrayImpl()
    cpu, gone = jax.array.ArrayImpl("cpu"), jax.array.ArrayImpl(deleted=True)
    launch()
    if os.fork() == 0:
        forked = torch.Tensor(0x8000, (4,))
        launch()
        os._exit(0)
    os.wait()
    def work(threads): torch.use()
    thread = threading.Thread(target=work, args=(torch.Tensor(0x6000, (4,)),))
    thread.start(); thread.join()
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""
    ran = run(tmp_path, source, tensors=True, python=python)
    assert (ran.status, ran.stderr) == (0, "")
    named = sorted(sorted({fields[5] for fields in trace}) for trace in ran.traces)
    assert ["a", "c", "j", "threads"] in named
    assert ["inner"] in named
    assert any("forked" in name for name in named)
    lines = {fields[5]: fields for trace in ran.traces for fields in trace}
    assert lines["c"][2:5] == ["torch.Size([3, 4])", "48", str(0x20100)]
    assert lines["c"][8:] == ["float32", "4", "(4, 1)", str(0x20000)]
    assert lines["j"][2:5] + lines["j"][8:] == [
        "torch.Size([2, 5])", "80", str(0x30000), "float64", "8", "(5, 1)", str(0x30000),
    ]  # fmt: skip


def test_trace_of_earlier_process_with_same_pid_is_not_used(tmp_path: Path) -> None:
    source = """
import torch
os.makedirs(f"{os.environ['TUI_PROBE_TRACE_ROOT']}/Nov21_010101_{os.getpid()}")
before = torch.Tensor(0x1000, (4,))
torch.use(before)
launch()
torch.use(before)
"""
    ran = run(tmp_path, source, tensors=True)
    assert (ran.stderr, ran.names[0]) == ("", "before")
    assert [path.parent.name[6:12] for path in tmp_path.glob("trace/*/tensor.trace")] == ["025650"]


def test_trace_older_than_the_block_is_used(tmp_path: Path) -> None:
    """The first launch may take seconds, while its kernel is prepared."""
    source = """
import torch
from neutrino.utils.tensortrace import TensorTrace
os.utime(launch(), (1, 1))
with TensorTrace():
    inside = torch.Tensor(0x1000, (4,))
"""
    assert run(tmp_path, source, tensors=False).names == ["inside"]


def test_trace_begun_in_a_directory_made_by_the_launcher_is_used(tmp_path: Path) -> None:
    """The directory of traces does not change then."""
    source = """
import torch
root = os.environ["TUI_PROBE_TRACE_ROOT"]
folder = f"{root}/{os.environ['TUI_PROBE_STAMP']}_{os.getpid()}"
os.mkdir(folder)
for path in (folder, root):
    os.utime(path, (1, 1))
before = torch.Tensor(0x1000, (4,))
torch.use(before)
launch()
torch.use(before)
"""
    assert run(tmp_path, source, tensors=True).names == ["before"]


@PYTHONS
def test_attributes_of_self(tmp_path: Path, python: str) -> None:
    source = """
import torch
class Layer:
    def __init__(self):
        self._parameters = {"weight": torch.nn.Parameter(0x1000, (4,))}
        self.cache = torch.Tensor(0x2000, (4,))
    def __getattr__(self, name): raise SystemExit("asked for " + name)
    def forward(self, x): torch.use(x)
launch()
Layer().forward(torch.Tensor(0x3000, (4,)))
"""
    ran = run(tmp_path, source, tensors=True, python=python)
    assert (ran.status, ran.stderr) == (0, "")
    assert {"self.weight", "self.cache", "x"} <= {*ran.names}


@PYTHONS
def test_nothing_is_kept_alive(tmp_path: Path, python: str) -> None:
    source = """
import torch, weakref
def work():
    x = torch.Tensor(0x1000, (4,))
    torch.use(x)
    seen = weakref.ref(x)
    torch.use()
    del x
    print(seen() is None)
launch()
work()
print("x" in dir())
"""
    assert run(tmp_path, source, tensors=True, python=python).stdout == "True\nFalse\n"


@PYTHONS
def test_the_program_notices_nothing(tmp_path: Path, python: str) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys; sys.own = True\n")
    source = """
import sys, threading
print(sys.path[1:4], getattr(sys, "own", False), sys.modules.get("sitecustomize"), sys.gettrace())
def f(a, b=[]):
    c = locals(); c["new"] = 1; len(b)
    return sorted(locals())
print(f(1), [x for x in range(3)])
try:
    (lambda: 1 / 0)()
except ZeroDivisionError as error:
    print(error)
def deep(n): return 0 if n == 0 else 1 + deep(n - 1)
print(deep(200))
sys.exit(3)
"""
    for more in (str(own), ""):
        with_names = run(tmp_path, source, tensors=True, python=python, more=more)
        unprofiled = run(tmp_path, source, tensors=False, python=python, more=more)
        assert (with_names.stdout, with_names.stderr, with_names.status) == (unprofiled.stdout, unprofiled.stderr, 3)
    assert with_names.traces == []  # it launched nothing, so there is no trace


@PYTHONS
def test_outside_of_a_block_nothing_is_watched(tmp_path: Path, python: str) -> None:
    source = """
import sys
from neutrino.utils.tensortrace import TensorTrace
def watched():
    monitoring = getattr(sys, "monitoring", None)
    return sys.getprofile() is not None if monitoring is None else any(map(monitoring.get_tool, range(6)))
with TensorTrace():
    with TensorTrace():
        pass
    inside = watched()
assert (watched(), inside) == (False, True)
del os.environ["TUI_PROBE_TRACE_ROOT"]
with TensorTrace():
    assert not watched()
"""
    assert run(tmp_path, source, tensors=False, python=python).stderr == ""


def test_other_profiler_is_unchanged(tmp_path: Path) -> None:
    source = """
import sys, torch
from neutrino.utils.tensortrace import TensorTrace
launch()
mine = lambda *_: None
if hasattr(sys, "monitoring"):
    for tool in range(6):
        sys.monitoring.use_tool_id(tool, "mine")
else:
    sys.setprofile(mine)
with TensorTrace():
    x = torch.Tensor(0x1000, (4,))
assert hasattr(sys, "monitoring") or sys.getprofile() is mine
"""
    ran = run(tmp_path, source, tensors=False)
    assert ran.stderr == ""
    assert ran.traces == [[["[info]", "another Python profiler is active in this program, so tensors cannot be named"]]]


@PYTHONS
def test_failure_is_reported_and_harmless(tmp_path: Path, python: str) -> None:
    source = """
import torch
class Odd:
    __dict__ = property(lambda self: {}["no\\n dict"])
    def work(self, x): torch.use(x)
launch()
for _ in range(3):
    Odd().work(torch.Tensor(0x3000, (4,)))
class Worse(Odd):
    __dict__ = property(lambda self: {}["1" * 1000])
Worse().work(1)
class NoText(Exception):
    def __str__(self): raise ValueError
class Mute(Odd):
    @property
    def __dict__(self): raise NoText
Mute().work(1)
done = torch.Tensor(0x1000, (4,))
torch.use(done)
print("done")
"""
    ran = run(tmp_path, source, tensors=True, python=python)
    assert (ran.status, ran.stdout, ran.stderr) == (0, "done\n", "")
    assert "done" in ran.names
    notes = [fields[1] for fields in ran.traces[0] if fields[0] == "[info]"]
    assert notes[0] == r"some tensor names were not recorded in work: KeyError: 'no\n dict'"
    assert notes[1].startswith("some tensor names were not recorded in work: KeyError: '111")
    assert notes[2] == "some tensor names were not recorded in work: NoText"
    assert (len(notes), len(notes[1])) == (3, len("some tensor names were not recorded in ") + 300)


def test_an_installed_neutrino_wins(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "neutrino" / "utils").mkdir(parents=True)
    for place, text in (
        ("__init__", "probe = 1\n"), ("utils/__init__", ""), ("utils/tensortrace", "TensorTrace = 'real'\n"),
    ):  # fmt: skip
        (real / "neutrino" / f"{place}.py").write_text(text)
    source = """
import neutrino, neutrino.utils.tensortrace as found
print(neutrino.__file__, found.TensorTrace, getattr(neutrino, "probe", None))
"""
    assert run(tmp_path, source, tensors=False, more=str(real)).stdout == f"{real}/neutrino/__init__.py real 1\n"
    later = f"import sys; sys.path.append({str(real)!r})\n{source}"  # as one in site-packages stands
    assert run(tmp_path, later, tensors=False).stdout == f"{real}/neutrino/__init__.py real 1\n"
    ours = run(tmp_path, source, tensors=False).stdout
    assert "shim/neutrino/__init__.py" in ours
    assert "TensorTrace" in ours


@PYTHONS
def test_other_module_of_that_name_is_found(tmp_path: Path, python: str) -> None:
    own = tmp_path / "own" / "neutrino"
    own.mkdir(parents=True)
    (own / "detector.py").write_text("EVENTS = 3\n")  # a folder without __init__.py
    source = """
import neutrino.detector
from neutrino.utils.tensortrace import TensorTrace
print(neutrino.detector.EVENTS)
"""
    ran = run(tmp_path, source, tensors=False, python=python, more=str(own.parent))
    assert (ran.stdout, ran.stderr) == ("3\n", "")
    finder = """
import importlib.machinery, importlib.util, sys, types
class Editable:
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self, origin="elsewhere") if name == "neutrino" else None
    def create_module(self, spec): return None
    def exec_module(self, module): module.probe = "editable"
sys.meta_path.append(Editable())
import neutrino
print(neutrino.probe)
"""
    assert run(tmp_path, finder, tensors=False, python=python).stdout == "editable\n"


def test_written_trace_can_be_read(tmp_path: Path) -> None:
    source = """
import torch
storage = torch.Storage(0x1000, 768)
qkv = torch.Tensor(0, (4, 3, 32), storage=storage)
k = torch.Tensor(0, (4, 32), (96, 1), storage, offset=32)
launch()
"""
    run(tmp_path, source, tensors=True)
    (folder,) = (tmp_path / "trace").iterdir()
    (whole,) = read_tensors(Trace(folder))  # in which the view lies
    assert (whole.name, whole.text, whole.size) == ("qkv", "(4, 3, 32) float16", 768)
    assert whole.index(2 * (3 * 96 + 2 * 32 + 31)) == (3, 2, 31)
    assert whole.place.endswith("program.py:12")  # the call that saw it first
