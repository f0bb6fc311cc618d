"""Amounts that probes measure, by what they are amounts of: for pages that set any probe's numbers beside others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui_probe.probekit.registry import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tui_probe.probekit.measured import Measured
    from tui_probe.probekit.metric import Quantity


def measured_with(quantity: Quantity) -> str:
    """``-p NAME``: the probe to run for a quantity."""
    return f"-p {names_of(lambda probe: any(metric.quantity == quantity for metric in probe.metrics))[0]}"


def measuring_all(quantities: Iterable[Quantity]) -> str | None:
    """The probe that measures all of some quantities in one launch; None if there is none."""
    wanted = set(quantities)
    names = names_of(lambda probe: wanted <= {metric.quantity for metric in probe.metrics})
    return names[0] if names else None


def mean_quantities(results: Iterable[Measured]) -> dict[str, float]:
    """The mean of each quantity over results; one that is not known of some result is left out."""
    values: dict[str, list[float | None]] = {}
    for result in results:
        for figure in result.figures:
            if figure.metric.quantity:
                values.setdefault(figure.metric.quantity, []).append(figure.value)
    means = {}
    for quantity, found in values.items():
        known = [value for value in found if value is not None]
        if len(known) == len(found):
            means[quantity] = sum(known) / len(known)
    return means
