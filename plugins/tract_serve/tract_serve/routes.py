"""Which function answers which path."""

from __future__ import annotations

from typing import Final

from tract_serve import metrics
from tract_serve.chat import completions, embeddings
from tract_serve.chat import models as of_texts
from tract_serve.http import control, health, infer
from tract_serve.http.application import Handler

_MODEL: Final = "/v2/models/{}"
_VERSION: Final = "/v2/models/{}/versions/{}"
_REGIONS: Final = "/v2/systemsharedmemory"
_CUDA: Final = "/v2/cudasharedmemory"

ROUTES: Final[dict[tuple[str, str], Handler]] = {
    ("POST", f"{_MODEL}/infer"): infer.infer,
    ("POST", f"{_VERSION}/infer"): infer.infer,
    ("GET", "/v2/health/live"): health.live,
    ("GET", "/v2/health/ready"): health.ready,
    ("GET", "/v1/models"): of_texts.models,
    ("GET", "/v1/models/{}"): of_texts.model,
    ("POST", "/v1/chat/completions"): completions.chat,
    ("POST", "/v1/completions"): completions.completions,
    ("POST", "/v1/embeddings"): embeddings.embeddings,
    ("POST", "/v1/rerank"): embeddings.rerank,
    ("GET", "/metrics"): metrics.metrics,
    ("GET", "/v2"): health.server,
    ("GET", "/v2/"): health.server,
    ("GET", "/v2/models"): health.models,
    ("GET", "/v2/models/stats"): health.statistics,
    ("GET", _MODEL): health.model,
    ("GET", _VERSION): health.model,
    ("GET", f"{_MODEL}/ready"): health.model_ready,
    ("GET", f"{_VERSION}/ready"): health.model_ready,
    ("GET", f"{_MODEL}/config"): health.config,
    ("GET", f"{_VERSION}/config"): health.config,
    ("GET", f"{_MODEL}/stats"): health.statistics,
    ("GET", f"{_VERSION}/stats"): health.statistics,
    ("POST", "/v2/repository/index"): control.index,
    ("POST", "/v2/repository/models/{}/load"): control.load,
    ("POST", "/v2/repository/models/{}/unload"): control.unload,
    ("GET", f"{_REGIONS}/status"): control.regions,
    ("GET", f"{_REGIONS}/region/{{}}/status"): control.regions,
    ("POST", f"{_REGIONS}/region/{{}}/register"): control.register,
    ("POST", f"{_REGIONS}/region/{{}}/unregister"): control.unregister,
    ("POST", f"{_REGIONS}/unregister"): control.unregister,
    ("GET", f"{_CUDA}/status"): control.no_regions,
    ("GET", f"{_CUDA}/region/{{}}/status"): control.no_regions,
    ("POST", f"{_CUDA}/region/{{}}/register"): control.no_cuda,
    ("POST", f"{_CUDA}/region/{{}}/unregister"): control.nothing,
    ("POST", f"{_CUDA}/unregister"): control.nothing,
    ("GET", "/v2/trace/setting"): control.settings_of_traces,
    ("POST", "/v2/trace/setting"): control.settings_of_traces,
    ("GET", f"{_MODEL}/trace/setting"): control.settings_of_traces,
    ("POST", f"{_MODEL}/trace/setting"): control.settings_of_traces,
    ("GET", "/v2/logging"): control.settings_of_logs,
    ("POST", "/v2/logging"): control.settings_of_logs,
}
