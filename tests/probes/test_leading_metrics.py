"""The values that the page of launches shows of each launch."""

from __future__ import annotations

from tui_probe.probekit.metric import Metric, MetricValue, leading_metrics

AMOUNT = Metric("bytes", "bytes", "B", better="lower", of_work=True)
COUNT = Metric("requests", "requests")
MEAN = Metric("sectors_per_load", "sectors per load", over_launches="mean")
JUDGED = Metric("degree", "conflict degree", better="lower", over_launches="mean")
PLACE = Metric("line", "most at PTX line", better="lower", place=True)


def keys(*results: list[MetricValue]) -> list[str]:
    return [value.key for value in leading_metrics(results)]


def test_leading_metric_is_judged_whatever_the_work() -> None:
    values = [MetricValue(metric, 7) for metric in (AMOUNT, COUNT, PLACE, JUDGED, MEAN)]
    assert keys(values) == ["degree"]


def test_result_without_judged_metric_adds_nothing() -> None:
    assert keys([MetricValue(COUNT, 7)], [MetricValue(JUDGED, 2.0)]) == ["degree"]


def test_mean_leads_where_nothing_is_judged() -> None:
    assert keys([MetricValue(COUNT, 7), MetricValue(MEAN, 4.0)], [MetricValue(AMOUNT, 9)]) == ["sectors_per_load"]


def test_unmeasured_and_hidden_values_never_lead() -> None:
    assert keys([MetricValue(JUDGED, None), MetricValue(MEAN, 4.0, is_shown=False)]) == []
