"""A stand-in for NVIDIA's package ``ncu_report``, with the part of its interface that is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Metric:
    number: str | float | None
    by_address: Mapping[int, float] = field(default_factory=dict)
    of: str = ""

    def unit(self) -> str:
        return self.of

    def has_value(self) -> bool:
        return self.number is not None

    def value(self, idx: int = -1) -> str | float | None:
        return self.number if idx < 0 else [*self.by_address.values()][idx]

    def num_instances(self) -> int:
        return len(self.by_address)

    def has_correlation_ids(self) -> bool:
        return bool(self.by_address)

    def correlation_ids(self) -> Metric:
        return Metric(None, dict(enumerate(self.by_address)))


@dataclass
class SourceLocation:
    file: str
    number: int

    def file_name(self) -> str:
        return self.file

    def line(self) -> int:
        return self.number


@dataclass
class Action:
    kernel: str | None
    metrics: Mapping[str, Metric]
    code: Mapping[int, tuple[str, SourceLocation | None]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    NameBase_DEMANGLED = 1

    def name(self, name_base: int = 0) -> str | None:
        return self.kernel if name_base or self.kernel is None else self.kernel.partition("(")[0]

    def metric_names(self) -> Sequence[str]:
        return [*self.metrics]

    def metric_by_name(self, metric_name: str) -> Metric | None:
        return self.metrics.get(metric_name)

    def source_info(self, address: int) -> SourceLocation | None:
        return self.code[address][1] if address in self.code else None

    def source_files(self) -> Mapping[str, str]:
        return self.files

    def sass_by_pc(self, address: int) -> str:
        return self.code[address][0] if address in self.code else ""


@dataclass
class Package:
    """Stand-in for the module ``ncu_report``: reports by path."""

    actions: Sequence[Action]

    def load_report(self, path: str) -> Package:
        if "broken" in path:
            raise RuntimeError("bad header")
        return self

    def num_ranges(self) -> int:
        return 1

    def range_by_idx(self, index: int) -> Package:
        assert index == 0
        return self

    def num_actions(self) -> int:
        return len(self.actions)

    def action_by_idx(self, index: int) -> Action:
        return self.actions[index]


def launch(kernel: str, grid: int, **metrics: Metric) -> Action:
    """A launch of a kernel with one-dimensional grid and block."""
    sides = {f"launch__{what}_dim_{side}": Metric(size if side == "x" else 1)
             for what, size in (("grid", grid), ("block", 64)) for side in "xyz"}  # fmt: skip
    return Action(kernel, sides | metrics)
