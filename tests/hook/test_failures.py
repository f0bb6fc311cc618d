"""If anything goes wrong with a probe, the program keeps its result and the log says why."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from .conftest import Engine, Host

ADD = """
context()
f = function(module(), "add__8")
w = word()
for _ in range(3):
    launch(f, w)
print(read(w))
"""


def only_fate(host: Host, script: str = ADD, **more: str) -> tuple[str, str]:
    """Runs a program that must be unharmed; status and reason of its one kernel."""
    run = host.python(script, **more)
    assert (run.status, run.stdout, run.stderr) == (0, "3\n", "")
    ((status, _, reason),) = run.outcomes()
    backups = [line.split(" reason ")[1] for line in run.lines(r"\[exec\] backup")]
    assert backups == [reason] * 3
    assert run.lines(r"\[exit\] launches 3 probed 0 dropped 0 reason -")
    return status, reason


def test_process_under_nsight_compute_runs_unprobed(host: Host) -> None:
    """ncu counts every kernel of the process, and would count ours."""
    outcome = only_fate(host, NV_NSIGHT_INJECTION_PORT_BASE="49152")
    assert outcome == ("skipped", "Nsight Compute is profiling this process")


def test_kernels_under_nsight_compute_are_probed_on_request(host: Host) -> None:
    run = host.python(ADD, NV_NSIGHT_INJECTION_PORT_BASE="49152", TUI_PROBE_UNDER_NCU="1")
    assert (run.status, run.stdout, run.stderr) == (0, "3\n", "")
    assert [status for status, *_ in run.outcomes()] == ["probed"]


@pytest.fixture
def serving(host: Host) -> Engine:
    assert host.engine
    return host.engine


def test_no_engine(host: Host) -> None:
    status, reason = only_fate(host, TUI_PROBE_ENGINE="/nowhere.sock")
    assert status == "failed"
    assert reason == "cannot connect to the probe engine at /nowhere.sock: No such file or directory"


def test_codes_of_an_engine_are_kept_and_bare_text_gets_one(host: Host, serving: Engine) -> None:
    """An answer may end with a code of the list; what an engine of another version says has a code of its own."""
    serving.answer = lambda _directory, _name: "skipped\t<id>\tno PTX in image code no-ptx"
    run = host.python(ADD)
    assert run.codes == ["no-ptx"]
    assert run.outcomes() == [("skipped", "add__8", "no PTX in image")]


@pytest.mark.parametrize("said", ["no such thing", "no PTX in image code nothing-like-it", "the code no-ptx, here"])
def test_words_without_a_code_of_the_list_get_one(host: Host, serving: Engine, said: str) -> None:
    serving.answer = lambda _directory, _name: f"failed\t<id>\t{said}"
    run = host.python(ADD)
    assert run.codes == ["engine-said"]
    assert run.outcomes() == [("failed", "add__8", said)]


def test_engine_refuses(host: Host, serving: Engine) -> None:
    serving.answer = lambda _directory, _name: "skipped\t<id>\tno PTX for sm_90"
    assert only_fate(host) == ("skipped", "no PTX for sm_90")


def test_engine_fails(host: Host, serving: Engine) -> None:
    serving.answer = lambda _directory, _name: "failed\t<id>\tptxas: line 7: no such register"
    assert only_fate(host) == ("failed", "ptxas: line 7: no such register")


def test_engine_dies(host: Host, serving: Engine) -> None:
    serving.answer = lambda _directory, _name: None
    assert only_fate(host) == ("failed", "the probe engine did not answer: Connection reset by peer")


def test_engine_is_silent(host: Host, serving: Engine) -> None:
    def never(_directory: Path, _name: str) -> None:
        serving.hang.wait(30)

    serving.answer = never
    status, reason = only_fate(host, TUI_PROBE_ENGINE_TIMEOUT="1")
    assert (status, reason) == ("failed", "the probe engine did not answer: Connection timed out")


def test_a_silent_engine_is_given_up(host: Host, serving: Engine) -> None:
    """One kernel may be what takes so long, two are not; those after them cost nothing."""

    def never(_directory: Path, name: str) -> None:
        asked.append(name)
        serving.hang.wait(30)

    asked: list[str] = []
    serving.answer = never
    names = [f"k{i}" for i in range(6)]
    script = f"""
context()
m = module()
for name in {names}: launch(function(m, name))
"""
    began = time.monotonic()
    run = host.python(script, TUI_PROBE_ENGINE_TIMEOUT="1")
    assert (run.status, run.stderr, asked) == (0, "", names[:2])
    assert time.monotonic() - began < 5
    assert len(run.lines(r"\[probe\] engine given up: .*")) == 1
    assert len(run.lines(r"\[kernel\] \d failed .* reason the probe engine did not answer: .*")) == 6


def test_engine_without_first_answer_is_given_up_for_all_processes(host: Host, serving: Engine) -> None:
    """The second process asks no one, and the launcher's file of notes names the first."""
    serving.greeting = None
    notes = host.probe.with_name("notes")
    notes.touch()
    for _ in range(2):
        for trace in host.root.iterdir():
            shutil.rmtree(trace)
        status, reason = only_fate(host, TUI_PROBE_NOTES=str(notes))
        assert (status, reason) == ("failed", "the probe engine did not answer: Connection timed out")
    assert serving.hellos == 1
    assert notes.read_text().count("no-engine") == 1


@pytest.mark.parametrize("garbage", ["", "ok", "ok\t77\tprobed.bin", "yes\t<id>\tprobed.bin", "x" * 5000])
def test_engine_talks_garbage(host: Host, serving: Engine, garbage: str) -> None:
    serving.answer = lambda _directory, _name: garbage
    status, reason = only_fate(host)
    assert status == "failed"
    assert reason.startswith(("unexpected reply from the probe engine: ", "the probe engine did not answer: "))


def test_engine_of_another_version(host: Host, serving: Engine) -> None:
    serving.greeting = "hello\t2"
    status, reason = only_fate(host)
    assert status == "failed"
    assert reason.endswith("Protocol error")


def test_engine_names_a_file_elsewhere(host: Host, serving: Engine) -> None:
    serving.answer = lambda _directory, _name: "ok\t<id>\t../../probe.toml"
    assert only_fate(host)[0] == "failed"


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        (None, "kernel.info: No such file or directory"),
        ("", "kernel.info belongs to another kernel"),
        ("other\n1\n0\n", "kernel.info belongs to another kernel"),
        ("add__8\n", "kernel.info has no counts"),
        ("add__8\n1\n-1\n", "kernel.info has no counts"),
        ("add__8\n1\n999999\n", "kernel.info has no counts"),
        ("add__8\n2\n0\n", "kernel.info lists 2 parameters, but the driver reports 1"),
        ("add__8\n1\n1\n", "kernel.info has a map whose line is not of the form LEVEL,BYTES"),
        ("add__8\n1\n1\n1,0\n", "kernel.info has storage lines that do not match its maps"),
        (
            "add__8\n1\n1\n1,0\nstorage 0 sites record 12 cap 3 copies 64\n",
            "kernel.info has a 'storage' line of an unknown form",
        ),
        ("add__8\n1\n1\n1,-1\n", "kernel.info has storage lines that do not match its maps"),
        ("add__8\n1\n1\n1,16\nstorage 0 heap\n", "kernel.info has a 'storage' line of an unknown form"),
        ("add__8\n1\n1\n2,8\n", "kernel.info has a map whose line is not of the form LEVEL,BYTES"),
        ("add__8\n1\n512\n" + "1,8\n" * 512, "more than 512 parameters"),
    ],
)
def test_engine_leaves_a_wrong_kernel_info(host: Host, serving: Engine, info: str | None, reason: str) -> None:
    def answer(directory: Path, name: str) -> str:
        serving.write_probed(directory, name)
        if info is None:
            (directory / "kernel.info").unlink()
        else:
            (directory / "kernel.info").write_text(info)
        return "ok\t<id>\tprobed.bin"

    serving.answer = answer
    status, state = only_fate(host)
    assert status == "failed"
    assert state.endswith(reason)


def test_driver_refuses_the_probed_module(host: Host) -> None:
    status, reason = only_fate(host, STUB_FAIL_LOAD_PROBED="218")
    assert status == "failed"
    assert reason.endswith("probed.bin: CUDA_ERROR_INVALID_PTX")


def test_unknown_handle(host: Host) -> None:
    script = """
context()
loaded, function = c_void_p(), c_void_p()
stub = unseen_driver()
stub.cuModuleLoadData(byref(loaded), PTX)
stub.cuModuleGetFunction(byref(function), loaded, b"add__8")
w = word()
for _ in range(3):
    launch(function, w)
print(read(w))
"""
    assert only_fate(host, script) == ("skipped", "the hook did not see the program load the kernel's image")


def test_handle_without_a_name(host: Host) -> None:
    script = """
context()
loaded, function = c_void_p(), c_void_p()
stub = unseen_driver()
stub.cuModuleLoadData(byref(loaded), PTX)
stub.cuModuleGetFunction(byref(function), loaded, b"add__8")
w = word()
for _ in range(3):
    launch(function, w)
print(read(w))
"""
    assert only_fate(host, script, STUB_NO_NAMES="1") == ("skipped", "unknown function handle")


def test_probed_launch_that_cannot_run_gives_way_to_the_original(host: Host) -> None:
    run = host.python(ADD, STUB_FAIL_PROBED="701")
    assert (run.status, run.stdout) == (0, "3\n")
    reason = "the probed launch failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
    assert run.outcomes() == [("probed", "add__8", "-"), ("failed", "add__8", reason)]
    assert len([line for line in run.calls if line.startswith("launch probed")]) == 1
    assert run.lines(r"\[exec\] failed 701")
    assert run.results == []


def test_wrong_launch_of_the_program_stays_its_own_error(host: Host) -> None:
    script = """
context()
f = function(module(), "add__8")
w = word()
try:
    launch(f, w, grid=0)
except DriverError as error:
    print(*error.args)
launch(f, w)
print(read(w))
"""
    run = host.python(script)
    assert run.stdout == "cuLaunchKernel 1\n1\n", run.stderr
    assert run.outcomes() == [("probed", "add__8", "-")]
    assert len(run.results) == 1


def test_parameters_in_both_forms_stay_an_error(host: Host) -> None:
    script = """
context()
f = function(module(), "add__8")
w, size = word(), c_size_t(8)
extra = (c_void_p * 5)(1, ctypes.addressof(w), 2, ctypes.addressof(size), None)
print(cuda.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, None, pointers(w), extra))
launch(f, w)
print(read(w))
"""
    run = host.python(script)
    assert run.stdout == "1\n1\n", run.stderr
    assert run.outcomes() == [("probed", "add__8", "-")]


def test_error_of_the_context_reaches_the_program(host: Host) -> None:
    script = """
context()
f = function(module(), "add__8")
try:
    launch(f, word())
except DriverError as error:
    print(*error.args)
"""
    run = host.python(script, STUB_FAIL_PROBED="700")
    assert run.stdout == "cuLaunchKernel 700\n", run.stderr
    assert not [line for line in run.calls if line.startswith("launch add")]


def test_faulted_context_is_skipped(host: Host) -> None:
    script = """
context()
f = function(module(), "add__8")
w = word()
launch(f, w)
wait_for(lambda: logged("[exec] drain-failed"))
launch(f, w)
print(read(w))
"""
    run = host.python(script, STUB_FAIL_WAIT="700")
    assert (run.status, run.stdout) == (0, "2\n"), run.stderr
    assert run.lines(r"\[exec\] drain-failed 700 CUDA_ERROR_ILLEGAL_ADDRESS kernels 0")
    assert run.lines(
        r"\[exec\] backup .* reason an earlier error made the context unusable \(CUDA_ERROR_ILLEGAL_ADDRESS\)"
    )
    assert run.lines(r"\[exit\] launches 2 probed 1 dropped 1 reason CUDA_ERROR_ILLEGAL_ADDRESS")


def test_probe_memory_is_limited(host: Host) -> None:
    host.engine.maps = "0,64"  # type: ignore[union-attr]
    script = """
context()
f = function(module(), "add__8")
w = word()
launch(f, w, grid=64, block=1024)
for _ in range(200): launch(f, w, grid=2, block=1024)
print(read(w))
"""
    run = host.python(script, TUI_PROBE_MAX_PROBE_MEMORY=str(1 << 20))
    assert (run.status, run.stdout) == (0, "201\n"), run.stderr
    (backup,) = run.lines(r"\[exec\] backup")
    assert backup.endswith("reason the launch needs 4194304 bytes of probe memory, more than the limit of 1048576")
    assert len(run.results) == 200
    assert not [line for line in run.calls if line.startswith("DIRTY")]


def test_device_without_memory_for_probes(host: Host) -> None:
    run = host.python(ADD, STUB_MEMORY="100", TUI_PROBE_MAX_PROBE_MEMORY="4096")
    assert (run.status, run.stdout) == (0, "3\n"), run.stderr
    assert {line.split(" reason ")[1] for line in run.lines(r"\[exec\] backup")} == {"probe memory full"}


def test_memory_that_the_program_needs_is_given_back(host: Host) -> None:
    script = """
context()
f = function(module(), "add__8")
w = word()
launch(f, w)
wait_for(lambda: logged("[exec] save"))
wanted = c_uint64()
call("cuMemAlloc_v2", byref(wanted), c_size_t((16 << 20) - 1024))
launch(f, w)
print(read(w))
"""
    run = host.python(script, STUB_MEMORY=str(16 << 20), TUI_PROBE_MAX_PROBE_MEMORY=str(12 << 20))
    assert (run.status, run.stdout) == (0, "2\n"), run.stderr
    assert [line.split(" reason ")[1] for line in run.lines(r"\[exec\] backup")] == ["probe memory full"]


@pytest.mark.parametrize(
    "allocate", ["'cuMemAlloc_v2', byref(wanted), size", "'cuMemCreate', byref(wanted), size, None, 0"]
)
def test_memory_in_use_for_records_is_given_back_once_they_are_saved(host: Host, allocate: str) -> None:
    script = f"""
context()
f = function(module(), "add__8")
w = word()
launch(f, w)
wanted, size = c_uint64(), c_size_t((16 << 20) - 1024)
call({allocate})
print(read(w), logged("[exec] save"))
"""
    run = host.python(script, STUB_MEMORY=str(16 << 20), TUI_PROBE_MAX_PROBE_MEMORY=str(12 << 20))
    assert (run.status, run.stdout) == (0, "1 1\n"), run.stderr


def disk_bytes(folder: Path) -> int:
    """Return the disk blocks of all files of a folder, as du counts them."""
    return sum(path.lstat().st_blocks * 512 for path in (folder, *folder.rglob("*")))


def test_trace_is_limited(host: Host) -> None:
    script = "context()\nf = function(module(), 'add__8')\nw = word()\nfor _ in range(60): launch(f, w)\nprint(read(w))"
    run = host.python(script, TUI_PROBE_MAX_TRACE_BYTES="150000")
    assert run.stdout == "60\n", run.stderr
    assert 0 < len(run.results) < 60
    assert disk_bytes(run.directory) <= 150_000
    assert {line.split(" reason ")[1] for line in run.lines(r"\[exec\] backup")} == {"trace is full (150000 bytes)"}
    (told,) = run.lines(r"\[budget\]")
    assert re.fullmatch(r"\[budget\] trace-bytes reached limit 150000 used \d+: allow more with --max-trace-\w+", told)


@pytest.mark.parametrize(("limit", "probed"), [("", False), (str(2 << 30), True), ("none", True)])
def test_trace_limit_is_the_default(host: Host, limit: str, probed: bool) -> None:
    """Such a launch would write 1.1 GiB, more memory than there is here; its reason names the limit."""
    host.engine.maps = "0,64"  # type: ignore[union-attr]
    script = "context()\nlaunch(function(module(), 'add__8'), w := word(), grid=18000, block=1024)\nprint(read(w))"
    run = host.python(script, TUI_PROBE_MAX_TRACE_BYTES=limit, TUI_PROBE_MAX_PROBE_MEMORY="65536")
    assert (run.status, run.stdout) == (0, "1\n"), run.stderr
    (backup,) = run.lines(r"\[exec\] backup")
    assert ("trace is full (1G)" in backup, "probe memory" in backup) == (not probed, probed)


@pytest.mark.parametrize("memory", [1 << 20, 64 << 20])
def test_launch_that_is_too_large_takes_no_room_from_others(host: Host, memory: int) -> None:
    host.engine.maps = "0,64"  # type: ignore[union-attr]
    script = """
context()
f = function(module(), "add__8")
w = word()
for _ in range(3): launch(f, w, grid=96, block=1024)
for _ in range(9): launch(f, w)
print(read(w))
"""
    limit = 7 << 20 if memory == 1 << 20 else 1 << 20
    run = host.python(script, TUI_PROBE_MAX_TRACE_BYTES=str(limit), TUI_PROBE_MAX_PROBE_MEMORY=str(memory))
    assert (run.status, run.stdout) == (0, "12\n"), run.stderr
    assert len(run.lines(r"\[exec\] backup")) == 3
    assert len(run.results) == 9


def test_results_that_cannot_be_written(host: Host) -> None:
    script = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
context()
f = function(module(), "add__8")
w = word()
launch(f, w)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
launch(f, w, grid=100, block=1024)
launch(f, w)
wait_for(lambda: logged("[exec] save-failed"))
launch(f, w)
print(read(w))
"""
    host.engine.maps = "0,8"  # type: ignore[union-attr]
    run = host.python(script)
    assert (run.status, run.stdout) == (0, "4\n"), run.stderr
    (failed,) = run.lines(r"\[exec\] save-failed")
    assert failed.endswith("27 File too large")
    (backup,) = run.lines(r"\[exec\] backup")
    assert re.search(r"reason \S+/result/\d+\.\d{6}\.bin: File too large$", backup)
    assert run.codes == ["file-limit"]
    assert not list((run.directory / "result").glob(".*"))
    assert run.lines(r"\[exit\] launches 4 probed 3 dropped 2 reason .*: File too large$")


def test_trace_root_that_is_no_directory(host: Host) -> None:
    run = host.python(ADD, TUI_PROBE_TRACE_ROOT=str(host.probe))
    assert (run.status, run.stdout, run.stderr) == (0, "3\n", "")
    assert run.directories == []


def test_trace_root_that_does_not_exist(host: Host) -> None:
    run = host.python(ADD, TUI_PROBE_TRACE_ROOT="/proc/nowhere")
    assert (run.status, run.stdout, run.stderr) == (0, "3\n", "")
    assert run.directories == []


def test_slow_device_does_not_hold_the_program_up_at_its_end(host: Host) -> None:
    run = host.python("context()\nlaunch(function(module(), 'add'))", STUB_SLOW="600000", TUI_PROBE_EXIT_TIMEOUT="1")
    assert run.status == 0
    assert run.lines(r"\[exit\] gave up waiting for kernels and results after 1\d\d\d ms")
    assert run.lines(r"\[exit\] launches 1 probed 1 dropped 1 reason the program ended before the result was written")
