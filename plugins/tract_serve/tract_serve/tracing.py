"""Traces of requests by OpenTelemetry, where its API is installed: one request in so many, with the nodes of its run.

Without its SDK the API does nothing, and so does this. Which requests are traced, and where traces go, is up to the
SDK's own settings besides (``OTEL_TRACES_EXPORTER``, ``OTEL_SERVICE_NAME`` ...).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count
from time import time_ns
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.errors import TractError
from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_serve.models.served import Served
    from tract_serve.serving import Serving

Array = np.ndarray[Any, Any]

_NUMBERS: Final = count()

_MOST_NODES: Final = 2000
"""Spans of nodes of one trace."""


@frozen
class Trace:
    """A request that is traced. ``span``: its own; ``begun``: nanoseconds since 1970."""

    span: Any
    begun: int

    def end(self, served: Served, inputs: Sequence[Array], problem: BaseException | None) -> None:
        """The request is over. Its model is run once more, node by node, for the spans of nodes."""
        span, ended = self.span, time_ns()
        span.set_attributes(
            {"tract.model": served.name, "tract.version": served.version, "tract.runtime": served.runtime}
        )
        if problem is not None:
            span.record_exception(problem)
        else:
            served.apart(lambda: _add_nodes(span, self.begun, served, inputs))
        span.end(ended)


def traced(serving: Serving, headers: Mapping[str, str]) -> Trace | None:
    """The trace of a request, if it is one that is traced. ``headers``: those of the request, as ``traceparent``."""
    rate = serving.trace_rate
    if not rate or next(_NUMBERS) % rate:
        return None
    api = _api()
    if api is None:
        return None
    tracer, extract = api
    begun = time_ns()
    span = tracer.start_span("tract.infer", context=extract(dict(headers)), start_time=begun)
    return Trace(span, begun)


@cache
def _api() -> tuple[Any, Callable[[dict[str, str]], Any]] | None:
    """A tracer, and what reads the context that a client sends; ``None`` where OpenTelemetry is not installed."""
    try:
        from opentelemetry import propagate, trace
    except ImportError:
        return None
    return trace.get_tracer("tract_serve"), propagate.extract


def _add_nodes(span: Any, begun: int, served: Served, inputs: Sequence[Array]) -> None:
    """Spans of the nodes of a run, as long as they took, from the begin of the request on."""
    from opentelemetry import trace

    try:
        events = json.loads(served.runnable.chrome_trace(list(inputs)))["traceEvents"]
    except TractError:
        return  # a runtime that cannot tell
    api = _api()
    assert api is not None  # there is a span
    context: Any = trace.set_span_in_context(span)
    timed = [one for one in events if one.get("ph") == "X"][:_MOST_NODES]
    first = min((one["ts"] for one in timed), default=0)
    for one in timed:
        start = begun + int((one["ts"] - first) * 1000)
        node = api[0].start_span(one["name"], context=context, start_time=start)
        node.end(start + int(one["dur"] * 1000))
