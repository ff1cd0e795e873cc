"""What is counted, for Prometheus, under the names that Triton's dashboards know, and in seconds under ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from tract_serve.batching.statistics import BOUNDS, Statistics
from tract_serve.chat.served import ServedTexts
from tract_serve.http.exchange import Answer, HttpRequest
from tract_serve.models.served import Served
from tract_serve.sequences.sequenced import Sequenced

if TYPE_CHECKING:
    from tract_serve.serving import Serving

KIND: Final = b"text/plain; version=0.0.4; charset=utf-8"

_LABELS: Final = ("model", "version")

_COUNTS: Final[dict[str, tuple[str, Callable[[Statistics], int]]]] = {
    "nv_inference_request_success": ("Requests that were answered", lambda told: told.success.count),
    "nv_inference_count": ("Rows that were inferred", lambda told: told.rows),
    "nv_inference_exec_count": ("Runs of the model", lambda told: told.runs),
    "nv_inference_request_duration_us": ("Time of requests, waiting included", lambda told: told.success.ns // 1000),
    "nv_inference_queue_duration_us": ("Time that requests waited", lambda told: told.queue.ns // 1000),
    "nv_inference_compute_input_duration_us": ("Laying inputs together", lambda told: told.compute_input.ns // 1000),
    "nv_inference_compute_infer_duration_us": ("Runs, for each request", lambda told: told.compute_infer.ns // 1000),
    "nv_inference_compute_output_duration_us": ("Taking outputs apart", lambda told: told.compute_output.ns // 1000),
}
"""Names of counters, what they are, and what of a model's `Statistics` they are."""


class _Collector:
    """What Prometheus is told of the models that are ready."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving

    def describe(self) -> Sequence[Metric]:
        """Nothing that is known before somebody asks."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All families."""
        models = [one for versions in self._serving.repository.models.values() for one in versions.values()]
        served = [one for one in models if isinstance(one, Served)]
        for name, (what, value) in _COUNTS.items():
            family = CounterMetricFamily(name, what, labels=_LABELS)
            for one in served:
                family.add_metric((one.name, one.version), value(one.statistics))
            yield _named(family, name)
        yield _failures(served)
        pending = GaugeMetricFamily("nv_inference_pending_request_count", "Requests that wait", labels=_LABELS)
        for one in served:
            pending.add_metric((one.name, one.version), one.lane.waiting)
        yield pending
        yield _latencies(served)
        yield _sequences([one for one in served if isinstance(one, Sequenced)])
        yield from _texts([one for one in models if isinstance(one, ServedTexts)])
        yield _ready(self._serving)


def _named(family: CounterMetricFamily, name: str) -> Metric:
    """A counter without the ``_total`` that the library puts behind its name, as dashboards for Triton have it."""
    made = Metric(name, family.documentation, "counter")
    made.samples = [one._replace(name=name) for one in family.samples]
    return made


def _failures(served: Sequence[Served]) -> Metric:
    name = "nv_inference_request_failure"
    family = CounterMetricFamily(name, "Requests that were not answered", labels=(*_LABELS, "reason"))
    for one in served:
        told = one.statistics
        for reason, count in (("REJECTED", told.refused), ("CANCELED", told.cancelled), ("OTHER", _others(told))):
            family.add_metric((one.name, one.version, reason), count)
    return _named(family, name)


def _others(told: Statistics) -> int:
    return max(0, told.fail.count - told.refused - told.cancelled)


def _latencies(served: Sequence[Served]) -> Metric:
    family = HistogramMetricFamily(
        "tract_request_duration_seconds", "Time of requests, waiting included", labels=_LABELS
    )
    bounds = [*map(str, BOUNDS), "+Inf"]
    for one in served:
        told = one.statistics
        counts = accumulate(told.latencies)
        family.add_metric((one.name, one.version), list(zip(bounds, counts, strict=True)), told.success.ns * 1e-9)
    return family


def _sequences(served: Sequence[Sequenced]) -> Metric:
    family = GaugeMetricFamily("tract_sequences", "Sequences that are in memory", labels=_LABELS)
    for one in served:
        family.add_metric((one.name, one.version), len(one.sequences))
    return family


def _texts(served: Sequence[ServedTexts]) -> Iterator[Metric]:
    """Of models of texts: tokens, and texts that are written or wait."""
    tokens = CounterMetricFamily("tract_tokens", "Tokens of texts", labels=(*_LABELS, "kind"))
    texts = GaugeMetricFamily("tract_texts", "Texts that are written, or wait", labels=(*_LABELS, "state"))
    for one in served:
        told, name = one.counted, (one.name, one.version)
        for kind, count in (("prompt", told.prompts), ("cached", told.cached), ("written", told.written)):
            tokens.add_metric((*name, kind), count)
        for state, count in (("running", one.turns.running), ("waiting", one.turns.waiting)):
            texts.add_metric((*name, state), count)
    yield tokens
    yield texts


def _ready(serving: Serving) -> Metric:
    family = GaugeMetricFamily("tract_model_ready", "Whether a version of a model is ready", labels=_LABELS)
    for one in serving.repository.index:
        family.add_metric((one.name, one.version), float(one.state == "READY"))
    return family


def metrics_of(serving: Serving) -> bytes:
    """All of it, as Prometheus reads it; with memory and processor time of the process, where the system tells."""
    registry = CollectorRegistry()
    collector: Any = _Collector(serving)
    registry.register(collector)
    ProcessCollector(registry=registry)
    return generate_latest(registry)


async def metrics(request: HttpRequest) -> Answer:
    """What is counted, over HTTP."""
    return Answer([metrics_of(request.serving)], kind=KIND)
