"""The settings of traces and logs that clients may ask for, and set where they may control the server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, cast

from tract_serve.errors import BadRequest
from tract_serve.logs import LOGGER
from tract_serve.serving import Serving
from tract_serve.texts import shown

_TRACES: Final = ("trace_file", "trace_level", "trace_rate", "trace_count", "log_frequency", "trace_mode")
_LOGS: Final = ("log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format")


def trace_settings(serving: Serving, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of traces, once those are set that are asked for. Raises Forbidden, BadRequest.

    Those that say where traces go are OpenTelemetry's own here, and are taken where they change nothing.
    """
    now = _traces(serving)
    if any(value not in (None, []) for value in asked.values()):
        serving.check_control()
    for name, value in asked.items():
        if name not in _TRACES:
            raise BadRequest(f"there is no setting {shown(name)}; settings: {', '.join(_TRACES)}")
        if name not in ("trace_rate", "trace_level") and value not in (None, []) and _first(value) != now[name]:
            raise BadRequest(f"{name} is {now[name]!r} here, and cannot be set", hint="set OTEL_... of its environment")
    rate = serving.trace_rate
    if asked.get("trace_level") not in (None, []):
        given = asked["trace_level"]
        levels = cast("list[Any]", given) if isinstance(given, list) else [given]
        if not all(one in ("OFF", "TIMESTAMPS") for one in levels):
            raise BadRequest("trace_level holds something else than OFF and TIMESTAMPS")
        rate = 0 if "OFF" in levels else rate or 1000
    if asked.get("trace_rate") not in (None, []):
        text = _first(asked["trace_rate"])
        if not (text.isascii() and text.isdecimal()) or len(text) > 9:
            raise BadRequest(f"trace_rate is {shown(text)}, wanted a number from 0 on")
        rate = int(text)
    serving.trace_rate = rate
    return _traces(serving)


def _traces(serving: Serving) -> dict[str, Any]:
    rate = serving.trace_rate
    return {
        "trace_file": "",
        "trace_level": ["TIMESTAMPS"] if rate else ["OFF"],
        "trace_rate": str(rate),
        "trace_count": "-1",
        "log_frequency": "0",
        "trace_mode": "opentelemetry",
    }


def log_settings(serving: Serving, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of logs, once those are set that are asked for. Raises Forbidden, BadRequest."""
    if asked:
        serving.check_control()
    now = _logs()
    for name, value in asked.items():
        if name not in _LOGS:
            raise BadRequest(f"there is no setting {shown(name)}; settings: {', '.join(_LOGS)}")
        if type(value) is not type(now[name]) or (name == "log_verbose_level" and value < 0):
            raise BadRequest(f"{name} is {shown(value)}, wanted one as {now[name]!r}")
        if name in ("log_file", "log_format") and value != now[name]:
            raise BadRequest(f"{name} is {now[name]!r} here, and cannot be set")
    wanted = {**now, **asked}
    levels = (
        (wanted["log_verbose_level"] > 0, logging.DEBUG),
        (wanted["log_info"], logging.INFO),
        (wanted["log_warning"], logging.WARNING),
        (wanted["log_error"], logging.ERROR),
    )
    if asked:
        LOGGER.setLevel(next((level for is_wanted, level in levels if is_wanted), logging.CRITICAL))
    return _logs()


def _logs() -> dict[str, Any]:
    level = LOGGER.getEffectiveLevel()
    return {
        "log_file": "",
        "log_info": level <= logging.INFO,
        "log_warning": level <= logging.WARNING,
        "log_error": level <= logging.ERROR,
        "log_verbose_level": int(level <= logging.DEBUG),
        "log_format": "default",
    }


def _first(value: Any) -> str:
    found = cast("list[Any]", value) if isinstance(value, list) else [value]
    return str(found[0]) if found else ""
