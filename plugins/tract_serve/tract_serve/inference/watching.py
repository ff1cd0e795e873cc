"""The settings of traces and logs that clients may ask for, and set where they may control the server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from tract_serve.errors import BadRequest
from tract_serve.logs import LOGGER
from tract_serve.serving import Serving


def trace_settings(serving: Serving, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of traces, once those are set that are asked for. Raises Forbidden, BadRequest."""
    if asked:
        serving.check_control()
    if asked.get("trace_rate") is not None:
        rate = _first(asked["trace_rate"])
        if not rate.isdecimal() or len(rate) > 9:
            raise BadRequest(f"trace_rate is {rate[:40]!r}, wanted a number from 0 on")
        serving.trace_rate = int(rate)
    level = ["TIMESTAMPS"] if serving.trace_rate else ["OFF"]
    return {"trace_level": level, "trace_rate": str(serving.trace_rate), "trace_mode": "opentelemetry"}


def log_settings(serving: Serving, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of logs, once those are set that are asked for. Raises Forbidden, BadRequest."""
    if asked:
        serving.check_control()
    for name in asked:
        if name not in ("log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format"):
            raise BadRequest(f"there is no setting {name[:100]!r}")
    if "log_verbose_level" in asked or "log_info" in asked:
        verbose = asked.get("log_verbose_level", 0)
        info = asked.get("log_info", True)
        if not isinstance(verbose, int) or not isinstance(info, bool):
            raise BadRequest("log_verbose_level is a number, log_info true or false")
        LOGGER.setLevel(logging.DEBUG if verbose else logging.INFO if info else logging.WARNING)
    level = LOGGER.getEffectiveLevel()
    return {
        "log_file": "",
        "log_info": level <= logging.INFO,
        "log_warning": level <= logging.WARNING,
        "log_error": True,
        "log_verbose_level": int(level <= logging.DEBUG),
        "log_format": "default",
    }


def _first(value: Any) -> str:
    return str(value[0] if isinstance(value, list) and value else value)
