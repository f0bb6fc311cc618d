"""Any bytes give a table or an error of ours."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from tests.importers.files import DETAILS, IDENTITY, REAL, details, identity, line
from tui_probe.errors import ImportFileError
from tui_probe.importers.ncu import read_ncu
from tui_probe.importers.numbers import number_of, point_of
from tui_probe.importers.quantities import base_unit

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
    """Whether a file of these bytes gives a table or an error that names it; any other error passes through."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(content)
        try:
            table = read_ncu([path])
        except ImportFileError as error:
            return str(error).startswith(f"{path}: ")
        return len(table.launch) == len(table.metric) == len(table.value) and len(table.launches) > 0


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
    point_of([text])
    base_unit(text)
    number_of(text, point)


@given(st.integers(0, 10**12), st.integers(0, 99), st.booleans())
def test_numbers_are_read_back(whole: int, hundredths: int, swapped: bool) -> None:
    text = f"{whole:,}.{hundredths:02d}"
    if swapped:
        text = text.translate(str.maketrans(",.", ".,"))
    assert number_of(text, point_of([text])) == float(f"{whole}.{hundredths:02d}")


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=10), min_size=1))
def test_any_kernel_name_is_read_back(names: list[str]) -> None:
    value = {("S", "m", "byte"): "7"}
    text = details((identity(number, "k" + name), value) for number, name in enumerate(names))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_text(text, encoding="utf-8", newline="")
        table = read_ncu([path])
    assert [launch.kernel for launch in table.launches] == ["k" + name for name in names]
