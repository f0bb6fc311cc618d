"""Any bytes give a table or an error of tui-probe."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.importers.files import DETAILS, IDENTITY, REAL, details, identity, line
from tui_probe.errors import ImportFileError
from tui_probe.nsight.analysis.critical import ExpectedTensor
from tui_probe.nsight.analysis.kernel_metrics import COUNT_METRICS, TENSOR_ACTIVITY_METRICS
from tui_probe.nsight.analysis.launch_selection import IterationPlan
from tui_probe.nsight.importers.ncu import read_ncu
from tui_probe.nsight.importers.ncu_table import base_unit, decimal_point, parse_number
from tui_probe.nsight.pages.explanations import NCU_PAGES
from tui_probe.nsight.pages.opening import NcuSources, ncu_page
from tui_probe.pages.table_page import page_lines

RECORDED = (REAL / "ncu" / "vec_metrics.csv").read_bytes()
PIECES = st.sampled_from(
    [
        line(DETAILS), line([*IDENTITY, "a", "b"]), line([""] * 11 + ["byte", "%"]), ",".join(DETAILS), '"', ",", "\n",
        "\r", "\0", "==ERROR== ERR_NVGPUCTRPERM", "==PROF== x", '"Kernel Name"', "ID,Kernel Name",
        line([*identity(0, "f"), "S", "m", "byte", "1,024"]), line([*identity(1, "g"), "1", "2"]), '"0","1","', "²½",
        "Process ID,Kernel Name,Invocations,Section Name,Metric Name,Metric Unit,Average", "1,f,3,S,m,%,5",
    ]
)  # fmt: skip


def reads(content: bytes) -> bool:
    """Return whether a file of these bytes gives a table, not an error that names it; any other error is raised."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(content)
        try:
            table = read_ncu([path])
        except ImportFileError as error:
            return str(error).startswith(f"{path}: ")
        assert len(table.launch) == len(table.metric) == len(table.value)
        return len(table.launches) > 0


NUMBERS = st.sampled_from(["0", "1", "1,024", "2.50", "1.024,5", "-3", "1e308", "9" * 30, "n/a", "", "nan", "word"])
METRICS = st.sampled_from(
    [
        *COUNT_METRICS.values(), *TENSOR_ACTIVITY_METRICS, "dram__bytes.sum", "lts__t_bytes.sum",
        "l1tex__t_sectors.sum", "Duration",
        "gpu__time_duration.sum", "dram__bytes.sum.per_second", "dram__bytes.avg.per_second", "Memory Throughput",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed", "Compute (SM) Throughput", "x",
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum", "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
    ]
)  # fmt: skip
SECTIONS = st.sampled_from(["Command line profiler metrics", "Memory Workload Analysis", "S"])
UNITS = st.sampled_from(["", "byte", "Kbyte", "byte/second", "ns", "usecond", "%", "sector", "inst/cycle"])
LAUNCHES = st.lists(
    st.tuples(
        st.sampled_from(["f", "void g<half>(int)", "h_bf16"]),
        st.sampled_from(["(1, 1, 1)", "(4, 2, 1)", "(0, 0, 0)", "", "(9999999999, 1, 1)"]),
        st.dictionaries(st.tuples(SECTIONS, METRICS, UNITS), NUMBERS, min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=12,
)
PLANS = st.builds(IterationPlan, st.none() | st.integers(0, 4), st.none() | st.integers(1, 4), st.just(("none",)))
TENSORS = st.none() | st.just(ExpectedTensor(length=16, width=8, dtype="bf16"))


@given(LAUNCHES, PLANS, TENSORS)
def test_every_page_of_any_table_can_be_drawn(
    launches: list[tuple[str, str, dict[tuple[str, str, str], str]]], plan: IterationPlan, tensor: ExpectedTensor | None
) -> None:
    text = details((identity(n, kernel, grid=grid), values) for n, (kernel, grid, values) in enumerate(launches))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_text(text)
        table = read_ncu([path])
    assert len(table.launches) == len(launches)
    for name in NCU_PAGES:
        page = ncu_page(name, NcuSources(table, (), plan, tensor))
        for form in ("table", "json", "csv", "md"):
            assert list(page_lines(page, form, width=80)) or form == "csv"
        assert all(line is not None for line in page.lines(80))


@given(st.binary(max_size=400))
def test_any_bytes(content: bytes) -> None:
    assert reads(content)


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=20))
def test_pieces_of_tables_in_any_order(pieces: list[str]) -> None:
    assert reads("".join(pieces).encode("utf-8", "surrogatepass"))
    assert reads("\n".join(pieces).encode("utf-8", "surrogatepass"))


@given(st.integers(0, len(RECORDED)), st.integers(0, 200), st.binary(max_size=20))
def test_a_recorded_file_that_was_damaged(start: int, length: int, instead: bytes) -> None:
    assert reads(RECORDED[:start] + instead + RECORDED[start + length :])


@given(st.text(), st.sampled_from(".,"))
def test_any_text_is_a_number_or_none(text: str, point: str) -> None:
    decimal_point([text])
    base_unit(text)
    parse_number(text, point)


@given(st.integers(0, 10**12), st.integers(0, 99), st.booleans())
def test_numbers_are_read_back(whole: int, hundredths: int, swapped: bool) -> None:
    text = f"{whole:,}.{hundredths:02d}"
    if swapped:
        text = text.translate(str.maketrans(",.", ".,"))
    assert parse_number(text, decimal_point([text])) == float(f"{whole}.{hundredths:02d}")


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=10), min_size=1))
def test_any_kernel_name_is_read_back(names: list[str]) -> None:
    value = {("S", "m", "byte"): "7"}
    text = details((identity(number, "k" + name), value) for number, name in enumerate(names))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_text(text, encoding="utf-8", newline="")
        table = read_ncu([path])
    assert [launch.kernel for launch in table.launches] == ["k" + name for name in names]
