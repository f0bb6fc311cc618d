"""Probed launches in every form, their results and the lines that report them."""

from __future__ import annotations

import re
import struct

import pytest

from tui_probe.trace.results import read_result

from .conftest import Engine, Host, sha1

ONE = """
context()
f = function(module(), "add__8_4")
w, n = word(5), c_int(3)
launch(f, w, n, grid=3, block=40)
print(read(w))
"""


def records(blocks: int, slots: int, size: int) -> bytes:
    """Records that the stub's probed kernel writes."""
    records = [(block << 32 | slot + 1,) * (size // 8) for block in range(blocks) for slot in range(slots)]
    return b"".join(struct.pack(f"<{len(record)}Q", *record) for record in records)


def test_program_runs_as_without_the_hook(host: Host) -> None:
    plain = host.python(ONE, LD_PRELOAD="", HOST_LIBRARY=str(host.built.stub))
    hooked = host.python(ONE)
    assert (hooked.status, hooked.stdout, hooked.stderr) == (plain.status, plain.stdout, plain.stderr) == (0, "6\n", "")


def test_result_file_is_exact(host: Host) -> None:
    host.engine.maps = "1,16 0,8"  # type: ignore[union-attr]
    run = host.python(ONE)
    (path,) = (run.directory / "result").iterdir()
    header = struct.pack("<8I", 3, 1, 1, 40, 1, 1, 0, 2)
    entries = struct.pack("<IIQIIQ", 16, 32, 64, 8, 1, 64 + 3 * 2 * 16)
    assert path.read_bytes() == header + entries + records(3, 2, 16) + records(3, 40, 8)
    assert re.fullmatch(r"\d+\.\d{6}\.bin", path.name)


def test_lines_of_a_launch(host: Host) -> None:
    run = host.python(ONE, TUI_PROBE_TIMES="0")
    log = run.log
    pid = run.directory.name.split("_")[-1]
    assert run.directory.name == f"Nov21_010203_{pid}"
    assert log[0] == f"[init] pid {pid}"
    command = re.fullmatch(r"\[init\] cmd (\d+) (.*)", log[1])
    assert command
    assert int(command[1]) == len(command[2])
    assert re.fullmatch(r"\[init\] dl 0x[0-9a-f]+", log[2])
    assert re.fullmatch(r"\[init\] epoch \d{19}", log[3])
    assert log[4] == "[init] device 0 sms 132 clock 1980000 cc 9.0 name Stub GPU"
    assert log[5] == "[init] success"
    folder = f"0_{sha1('add__8_4')}"
    where = run.directory / "kernel" / folder
    pointer = r"0x[0-9a-f]+"
    expected = [
        rf"\[mod\] cuModuleLoadData 0 module {pointer} image {pointer}",
        r"\[bin\] type ptx size 27",
        rf"\[mod\] cuModuleGetFunction func {pointer} mod {pointer} name add__8_4",
        r"\[mem\] cuMemAlloc_v2 0 dptr [0-9a-f]+ bytesize 8",
        rf"\[exec\] funcmap-not-find {pointer}",
        rf"\[probe\] find {pointer} name add__8_4 bin {pointer} size 27",
        rf"\[probe\] rename add__8_4 {folder}",
        rf"\[probe\] mkdir {where}",
        rf"\[probe\] write {where}/original.bin",
        r"\[probe\] engine ok probed.bin",
        rf"\[probe\] read {where}/kernel.info name add__8_4 n_param 2 n_probe 1",
        rf"\[probe\] finish {pointer} name add__8_4 n_param 2 n_probe 1",
        r"\[kernel\] 0 probed registers 32 local 0 shared 0 blocks 51 name add__8_4 reason -",
        r"\[kernel\] 0 probed-function registers 34 local 0 shared 0 blocks 51 way ptx",
        rf"\[exec\] funcmap-find {pointer} success",
        r"\[exec\] \d{19} param [0-9a-f]+ 3",
        r"\[exec\] grid 3 1 1 block 40 1 1 shared 0 kernel 0 launch 0 stream 0",
        r"\[exec\] grid 3 warp  2 probe 16 total 96",
        r"\[exec\] probe-mem 96 \(bytes\)",
        r"\[exec\] succeed 0",
        r"\[exec\] save result/\d+\.\d{6}\.bin size 144 kernel 0 launch 0",
        r"\[exit\] status 0",
        r"\[exit\] launches 1 probed 1 dropped 0 reason -",
    ]
    assert len(log) == 6 + len(expected)
    for line, pattern in zip(log[6:], expected, strict=True):
        assert re.fullmatch(pattern, line), (line, pattern)


def test_kernel_folder_and_probe_file(host: Host) -> None:
    run = host.python(ONE)
    (folder,) = (run.directory / "kernel").iterdir()
    assert (folder / "original.bin").read_bytes() == b".version 8.0\n.target sm_80\n"
    assert (run.directory / "probe.toml").read_text() == "[probe]\n"


@pytest.mark.parametrize(
    "name",
    [
        "cuLaunchKernel",
        "cuLaunchKernel_ptsz",
        "cuLaunchKernelEx",
        "cuLaunchKernelEx_ptsz",
        "cuLaunchCooperativeKernel",
        "cuLaunchCooperativeKernel_ptsz",
    ],
)
def test_every_launch_function_is_probed(host: Host, name: str) -> None:
    run = host.python(
        f"context()\nf = function(module(), 'add__8')\nw = word()\nlaunch(f, w, name={name!r})\nprint(read(w))"
    )
    assert run.stdout == "1\n", run.stderr
    assert len(run.results) == 1
    assert len([line for line in run.calls if line.startswith("launch probed add__8")]) == 1


def test_attributes_of_an_extended_launch_arrive(host: Host) -> None:
    run = host.python(
        """
context()
f = function(module(), "plain")
attributes = (ctypes.c_char * 144)()
config = Config((c_uint * 3)(1, 1, 1), (c_uint * 3)(32, 1, 1), 0, None, ctypes.addressof(attributes), 2)
call("cuLaunchKernelEx", byref(config), f, None, None)
"""
    )
    assert "launch probed plain ex attributes 2" in run.calls


def test_parameters_in_one_buffer(host: Host) -> None:
    run = host.python(
        """
context()
f = function(module(), "mixed__8_4_24")
w = word()
buffer = (ctypes.c_char * 40)()
c_uint64.from_buffer(buffer).value = w.value
c_int.from_buffer(buffer, 8).value = -1
c_uint64.from_buffer(buffer, 16).value = 0x1122
size = c_size_t(40)
extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), None)
call("cuLaunchKernel", f, 1, 1, 1, 32, 1, 1, 0, None, None, extra)
size.value = 16
call("cuLaunchKernel", f, 1, 1, 1, 32, 1, 1, 0, None, None, extra)
print(read(w))
"""
    )
    assert run.stdout == "2\n", run.stderr
    (line,) = run.lines(r"\[exec\] \d+ param")
    assert line.endswith(" ffffffff 2211" + "0" * 44)
    (backup,) = run.lines(r"\[exec\] backup")
    assert backup.endswith("reason the parameter buffer is too small")


def test_a_buffer_may_end_within_the_last_parameter(host: Host) -> None:
    """As NCCL's do: its kernels read no more of a structure than was passed."""
    run = host.python(
        """
context()
f = function(module(), "mixed__8_4_24")
w = word()
buffer = (ctypes.c_char * 40)(*b"\\xff" * 40)
c_uint64.from_buffer(buffer).value = w.value
c_int.from_buffer(buffer, 8).value = -1
c_uint64.from_buffer(buffer, 16).value = 0x1122
size = c_size_t(24)
extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), None)
call("cuLaunchKernel", f, 1, 1, 1, 32, 1, 1, 0, None, None, extra)
print(read(w))
"""
    )
    assert run.stdout == "1\n", run.stderr
    (line,) = run.lines(r"\[exec\] \d+ param")
    assert line.endswith(" ffffffff 2211" + "0" * 44)
    assert not run.lines(r"\[exec\] backup")
    assert len(run.results) == 1


def test_buffer_of_parameters_on_a_driver_that_cannot_take_it_apart(host: Host) -> None:
    run = host.python(
        """
context()
f = function(module(), "add__8")
w = word()
buffer, size = c_uint64(w.value), c_size_t(8)
extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), None)
call("cuLaunchKernel", f, 1, 1, 1, 32, 1, 1, 0, None, None, extra)
launch(f, w)
print(read(w))
""",
        STUB_NO_PARAM_INFO="1",
    )
    assert run.stdout == "2\n", run.stderr
    assert [line.split("reason ")[1] for line in run.lines(r"\[exec\] backup")] == [
        "the driver does not report the layout of the parameter buffer"
    ]
    assert run.lines(r"\[exec\] \d+ param -$")
    assert len(run.results) == 1


def test_kernel_without_parameters(host: Host) -> None:
    run = host.python("context()\nf = function(module(), 'plain')\nlaunch(f)\nlaunch(f)")
    assert run.status == 0, run.stderr
    assert run.lines(r"\[exec\] \d+ param$")
    assert [result.maps for result in run.results] == [[(16, 32, records(2, 2, 16))]] * 2


def test_many_launches_with_large_parameters_fill_several_chunks(host: Host) -> None:
    host.engine.maps = "0,64"  # type: ignore[union-attr]
    run = host.python(
        """
context()
f = function(module(), "big__8_200")
w, big = word(), (ctypes.c_char * 200)()
for _ in range(300):
    launch(f, w, big, grid=8, block=96)
print(read(w))
"""
    )
    assert run.stdout == "300\n", run.stderr
    assert not [line for line in run.calls if line.startswith("DIRTY")]
    assert len(run.results) == 300
    assert all(result.maps == [(64, 1, records(8, 96, 64))] for result in run.results)
    assert run.lines(r"\[exit\] launches 300 probed 300 dropped 0")


def test_result_larger_than_the_copying_window(host: Host) -> None:
    host.engine.maps = "1,8 0,64"  # type: ignore[union-attr]
    run = host.python("context()\nf = function(module(), 'plain')\nlaunch(f, grid=300, block=1024)\nlaunch(f)")
    large, small = run.results
    assert large.maps == [(8, 32, records(300, 32, 8)), (64, 1, records(300, 1024, 64))]
    assert small.maps == [(8, 32, records(2, 2, 8)), (64, 1, records(2, 64, 64))]


def test_idle_records_are_saved_while_the_program_lives(host: Host) -> None:
    run = host.python(
        """
context()
launch(function(module(), "plain"))
wait_for(lambda: logged("[exec] save"))
print(logged("[exec] save"), logged("[exit]"))
"""
    )
    assert run.stdout == "1 0\n", run.stderr


def test_records_are_saved_while_launches_go_on(host: Host) -> None:
    """Launches that follow one another too closely for the records to be idle do not keep them until there are many."""
    run = host.python(
        """
context()
f = function(module(), "plain")
def one_more():
    launch(f)
    time.sleep(0.002)
    return logged("[exec] save")
wait_for(one_more)
print(logged("[exec] save") > 0, logged("[exit]"))
"""
    )
    assert run.stdout == "True 0\n", run.stderr


def test_result_is_logged_after_its_launch(host: Host) -> None:
    """A launch that takes long leaves records that are wanted immediately; on one core, the saving thread may go
    first.
    """
    run = host.python(
        """
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
context()
f = function(module(), "plain")
for _ in range(5):
    launch(f)
""",
        STUB_SLOW_LAUNCH="150",
    )
    order = [re.findall(r"\[exec\] (grid|save).* launch (\d+)", line) for line in run.log]
    events = [found[0] for found in order if found]
    assert sorted(events) == sorted((what, str(n)) for n in range(5) for what in ("grid", "save"))
    assert all(events.index(("grid", str(n))) < events.index(("save", str(n))) for n in range(5))


def test_library_kernel_launched_as_a_function(host: Host) -> None:
    run = host.python(
        """
context()
k = kernel(library(), "add__8")
w = word()
launch(k, w)
f = c_void_p()
call("cuKernelGetFunction", byref(f), k)
launch(f, w)
print(read(w), f.value != k.value)
"""
    )
    assert run.stdout == "2 True\n", run.stderr
    assert run.outcomes() == [("probed", "add__8", "-")]
    assert len(run.results) == 2


def test_module_of_a_library_and_enumerated_kernels(host: Host) -> None:
    run = host.python(
        """
context()
lib, m = library(), c_void_p()
kernel(lib, "one"), kernel(lib, "two")
call("cuLibraryGetModule", byref(m), lib)
launch(function(m, "three"))
kernels = (c_void_p * 9)(*[0xdead] * 9)
call("cuLibraryEnumerateKernels", kernels, 9, lib)
launch(c_void_p(kernels[1]))
functions = (c_void_p * 9)(*[0xdead] * 9)
other = module()
function(other, "four")
call("cuModuleEnumerateFunctions", functions, 9, other)
launch(c_void_p(functions[0]))
"""
    )
    assert run.outcomes() == [("probed", "three", "-"), ("probed", "two", "-"), ("probed", "four", "-")], run.stderr


def test_same_name_in_two_images_is_two_kernels(host: Host) -> None:
    run = host.python("context()\nlaunch(function(module(), 'add'))\nlaunch(function(module(PTX + b' '), 'add'))")
    assert sorted(path.name for path in (run.directory / "kernel").iterdir()) == [f"{i}_{sha1('add')}" for i in (0, 1)]


def test_two_kernels_of_one_image_share_its_file(host: Host) -> None:
    run = host.python("context()\nm = module()\nlaunch(function(m, 'one'))\nlaunch(function(m, 'two'))")
    one, two = sorted((run.directory / "kernel").glob("*/original.bin"))
    assert one.samefile(two)


def test_attributes_set_before_and_after_preparation_reach_the_probed_function(host: Host) -> None:
    run = host.python(
        """
context()
f = function(module(), "add")
call("cuFuncSetAttribute", f, 8, 100000)
launch(f)
call("cuFuncSetAttribute", f, 9, 50)
call("cuFuncSetCacheConfig", f, 2)
k = kernel(library(), "other")
launch(k)
call("cuKernelSetAttribute", 8, 70000, k, 0)
call("cuKernelSetAttribute", 9, 10, k, 1)
"""
    )
    assert run.status == 0, run.stderr
    assert [line for line in run.calls if line.startswith(("attribute", "cache"))] == [
        "attribute add 8=100000",
        "attribute probed add 8=100000",
        "attribute add 9=50",
        "attribute probed add 9=50",
        "cache add 2",
        "cache probed add 2",
        "attribute other 8=70000",
        "attribute probed other 8=70000",
        "attribute other 9=10",
    ]


@pytest.mark.parametrize("owner", ["function(module(), 'add__8')", "kernel(library(), 'add__8')"])
def test_module_variables_are_shared_with_the_original(host: Host, owner: str) -> None:
    host.engine.globals = "shared_variable"  # type: ignore[union-attr]
    run = host.python(f"context()\nf = {owner}\nw = word()\nlaunch(f, w)\nlaunch(f, w)\nprint(read(w))")
    assert run.stdout == "2\n", run.stderr
    assert run.outcomes() == [("probed", "add__8", "-")]


def test_module_variable_that_cannot_be_found(host: Host) -> None:
    host.engine.globals = "elsewhere"  # type: ignore[union-attr]
    run = host.python("context()\nf = function(module(), 'add__8')\nw = word()\nlaunch(f, w)\nprint(read(w))")
    assert run.stdout == "1\n", run.stderr
    assert run.outcomes() == [
        ("failed", "add__8", "the probed kernel cannot use module variable elsewhere of the original module")
    ]


def test_several_threads(host: Host) -> None:
    run = host.python(
        """
import threading
c = context()
m = module()
addresses = [word() for _ in range(6)]
def work(w):
    call("cuCtxSetCurrent", c)
    f = function(m, "add__8")
    s = stream()
    for _ in range(200):
        launch(f, w, stream=s)
threads = [threading.Thread(target=work, args=(w,)) for w in addresses]
for t in threads: t.start()
for t in threads: t.join()
print([read(w) for w in addresses])
"""
    )
    assert run.stdout == f"{[200] * 6}\n", run.stderr
    assert run.outcomes() == [("probed", "add__8", "-")]
    assert len(run.results) == 1200
    assert run.lines(r"\[exit\] launches 1200 probed 1200 dropped 0")
    numbers = [int(line.split("launch ")[1].split()[0]) for line in run.lines(r"\[exec\] grid .* launch ")]
    assert sorted(numbers) == list(range(1200))


def test_selected_launches_only(host: Host) -> None:
    run = host.python(
        "context()\nf = function(module(), 'add')\nfor _ in range(8): launch(f)", TUI_PROBE_LAUNCHES="1-2,6"
    )
    assert len(run.results) == 3
    backups = run.lines(r"\[exec\] backup")
    assert [int(line.split("launch ")[1].split()[0]) for line in backups] == [0, 3, 4, 5, 7]
    assert all(line.endswith("reason launch not selected") for line in backups)


def test_filters(host: Host) -> None:
    script = "context()\nm = module()\nfor n in ('add_one', 'add_two', 'mul'): launch(function(m, n))"
    run = host.python(script, TUI_PROBE_KERNELS="add:nothing", TUI_PROBE_FILTER="two")
    assert run.outcomes() == [
        ("probed", "add_one", "-"),
        ("filtered", "add_two", "excluded by name"),
        ("filtered", "mul", "not selected by --kernel"),
    ]
    assert len(list((run.directory / "kernel").iterdir())) == 1


def engine_of(host: Host) -> Engine:
    assert host.engine
    return host.engine


def test_engine_hears_kernel_and_architecture(host: Host) -> None:
    host.python("context()\nm = module()\nlaunch(function(m, 'one'))\nlaunch(function(m, 'two'))")
    assert engine_of(host).prepared == ["one", "two"]
    assert engine_of(host).architectures == ["sm_90", "sm_90"]


def test_engine_hears_how_large_the_block_is(host: Host) -> None:
    host.python("context()\nm = module()\nlaunch(function(m, 'one'), block=384)")
    assert engine_of(host).threads == [384]


def test_engine_remark_is_the_reason_of_a_probed_kernel(host: Host) -> None:
    engine_of(host).storage = ["note the probe matched nothing"]
    run = host.python(ONE)
    assert run.outcomes() == [("probed", "add__8_4", "the probe matched nothing")]
    assert len(run.results) == 1


@pytest.mark.parametrize("ending", ["", " max 8"])
def test_copies_of_sites_are_added_up(host: Host, ending: str) -> None:
    """64 copies of 256 bytes, each filled by a block: the file has their sum, of three records of 16 bytes, or of one
    field the largest.
    """
    host.engine.maps = "1,0 1,8"  # type: ignore[union-attr]
    host.engine.storage = [f"storage 0 sites record 16 cap 3 copies 64{ending}"]  # type: ignore[union-attr]
    host.engine.filled = "1,256 1,8"  # type: ignore[union-attr]
    run = host.python(ONE.replace("grid=3, block=40", "grid=64, block=32"))
    (path,) = (run.directory / "result").iterdir()
    data = path.read_bytes()
    records_at = 32 + 2 * 16
    assert struct.unpack_from("<IIQIIQ", data, 32) == (0, 32, records_at, 8, 32, records_at)
    about = records_at + 64 * 8
    assert data[about : about + 8] == b"records\1"
    assert struct.unpack_from("<IIQIIQ", data, about + 8) == (4, 16, 48, 0, 8, 0)
    added_up, largest = sum(range(64)) << 32 | 64, 63 << 32 | 1
    assert struct.unpack_from("<6Q", data, about + 40) == (added_up, largest if ending else added_up) * 3
    assert len(data) == about + 40 + 48
    assert "[exec] grid 64 warp  1 probe 0 total 48" in run.log


SAMPLED = """
context()
f = function(module(), "add__8_4")
w, n = word(5), c_int(3)
for grid in ((20, 1, 1), (5, 4, 2), (2, 1, 1)):
    launch(f, w, n, grid=grid, block=40)
print(read(w))
"""


@pytest.mark.parametrize(
    ("spec", "blocks"),
    [
        ("1/4", (range(0, 20, 4), range(0, 40, 4), range(1))),
        ("3-6", (range(3, 7), range(3, 7), None)),
        ("6", (range(0, 18, 3), range(0, 36, 6), range(2))),
    ],
)
def test_a_sample_of_the_blocks(host: Host, spec: str, blocks: tuple[range | None, ...]) -> None:
    """Memory and file are of the sample's blocks; a launch without any runs as it is."""
    engine = host.engine
    assert engine is not None
    engine.sampled, engine.maps, engine.globals = True, "1,16 0,8", "shared_variable"
    engine.storage = ["storage 0 plain record 16 cap 1"]
    run = host.python(SAMPLED, TUI_PROBE_SAMPLE=spec)
    assert (run.status, run.stdout, run.stderr) == (0, "8\n", "")
    assert not [line for line in run.calls if "DIRTY" in line]
    results = sorted((run.directory / "result").iterdir())
    grids = [(20, 1, 1), (5, 4, 2), (2, 1, 1)]
    measured = [(grid, some) for grid, some in zip(grids, blocks, strict=True) if some is not None]
    assert len(results) == len(measured)
    for path, (grid, some) in zip(results, measured, strict=True):
        result = read_result(path)
        assert (result.header.grid, result.blocks) == (grid, some)
        numbers = result.records(0, [("slot", "<u4"), ("block", "<u4")])["block"][:, :, 0]
        assert numbers.tolist() == [[block] * 2 for block in some]
        assert result.records(1, "<u8").shape == (len(some), 40, 1)
    assert len(run.lines(r"\[exec\] backup .* reason no block of the launch is in the sample$")) == 3 - len(measured)
    totals = [f"[exec] probe-mem {len(some) * (2 * 16 + 40 * 8)} (bytes)" for _, some in measured]
    assert run.lines(r"\[exec\] probe-mem") == totals


def test_an_engine_that_knows_of_no_sample(host: Host) -> None:
    """Nothing is measured as if it were of all blocks."""
    run = host.python(ONE, TUI_PROBE_SAMPLE="1/2")
    assert run.stdout == "6\n"
    assert [(status, reason) for status, _, reason in run.outcomes()] == [
        ("failed", "TUI_PROBE_SAMPLE differs between the program and the probe engine")
    ]


@pytest.mark.parametrize("library", [False, True])
@pytest.mark.parametrize(("added", "why"), [(0, "has 2 parameters, but a launch passes 3"), (4, "has 6 parameters")])
def test_a_probed_kernel_with_other_parameters_is_not_launched(host: Host, added: int, why: str, library: bool) -> None:
    """Each launch would pass it garbage, and read its own past their end."""
    assert host.engine
    host.engine.added = added
    get = 'kernel(library(), "add__8_4")' if library else 'function(module(), "add__8_4")'
    run = host.python(f"""
context()
f = {get}
w = word()
launch(f, w, c_int(3))
print(read(w))
""")
    assert (run.status, run.stdout, run.results) == (0, "1\n", []), run.stderr
    assert run.lines(rf"\[kernel\] 0 failed .* reason the probed kernel {why}")
    assert not [line for line in run.calls if "launch probed" in line]
