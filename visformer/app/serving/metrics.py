"""Metrics of a running server for Prometheus. Only the server imports this, never a page."""

from collections.abc import Iterator
from functools import partial
from itertools import accumulate

from prometheus_client import REGISTRY, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from visformer.app.serving.admission import ADMISSION, BOUNDS, Histogram
from visformer.app.serving.remote_models import LONG_WORK
from visformer.app.serving.trainings import RUNS
from visformer.app.serving.workbench import RESULTS, workbench
from visformer.app.streamlit_private import other_sessions
from visformer.system.cache import CACHE


def report() -> bytes:
    """Return what Prometheus itself reports of this process, and the app's metrics, in its text format."""
    return generate_latest(REGISTRY) + generate_latest(_App())


class _App(Collector):
    """Collects the counts that the app keeps anyway."""

    def collect(self) -> Iterator[Metric]:
        """Yield the app's metrics."""
        bench, counts = workbench(), ADMISSION.counts
        requests = CounterMetricFamily(
            "visformer_requests", "Traces and decodings requested, by outcome.", labels=["outcome"]
        )
        for outcome, n in counts.outcomes.items():
            requests.add_metric([outcome], n)
        yield requests
        yield _histogram("visformer_forward_seconds", "Computing a trace or a decoding.", counts.computed)
        yield _histogram("visformer_queue_seconds", "Waiting in the queue.", counts.queued)
        yield GaugeMetricFamily("visformer_queue_length", "Requests in the queue.", ADMISSION.waiting)
        yield GaugeMetricFamily("visformer_running", "Requests that are being computed.", ADMISSION.running)
        stuck = "Seconds that the oldest computation is late, while no thread is free."
        yield GaugeMetricFamily("visformer_stuck_seconds", stuck, ADMISSION.stuck_seconds)
        yield GaugeMetricFamily("visformer_sessions", "Browsers connected.", other_sessions.count())
        yield GaugeMetricFamily("visformer_kept_bytes", "Traces and decodings in the cache.", RESULTS.nbytes)
        yield GaugeMetricFamily("visformer_memory_bytes", "Other models, uploads and generated files.", CACHE.nbytes)
        yield GaugeMetricFamily("visformer_memory_limit_bytes", "The most that they may have.", CACHE.most())
        # Prometheus itself reports this process only.
        for i, pid in enumerate((*bench.pids, *LONG_WORK.pids, *RUNS.pids)):
            yield from ProcessCollector(f"visformer_model_{i}", pid=partial(int, pid), registry=None).collect()
        yield GaugeMetricFamily("visformer_model_ready", "1 once the model is loaded.", bench.is_loaded)


def _histogram(name: str, help_text: str, durations: Histogram) -> HistogramMetricFamily:
    bounds = [*map(str, BOUNDS), "+Inf"]
    buckets = list(zip(bounds, accumulate(durations.counts), strict=True))
    return HistogramMetricFamily(name, help_text, buckets=buckets, sum_value=durations.total)
