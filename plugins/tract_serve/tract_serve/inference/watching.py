"""The settings of traces and logs that clients may ask for, and set where they may control the server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, cast

from tract_serve.errors import BadRequest
from tract_serve.logs import LOGGER
from tract_serve.serving import Serving
from tract_serve.texts import shown

USUAL_RATE: Final = 1000
"""Of so many requests one is traced, where that is asked for, and not how often."""


def trace_settings(serving: Serving, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of traces, once those are set that are asked for. Raises Forbidden, BadRequest.

    Those that say where traces go are OpenTelemetry's own here, and are taken where they change nothing.
    """
    wanted = {name: value for name, value in asked.items() if value not in (None, [])}
    if wanted:
        serving.check_control()
    now = _traces(serving)
    for name in asked:
        _check_name(name, now)
    rate = _sampled(wanted.pop("trace_level", None), serving.trace_rate)
    serving.trace_rate = _rate(wanted.pop("trace_rate", str(rate)))
    _check_unchanged(wanted, now)
    return _traces(serving)


def _check_name(name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        raise BadRequest(f"there is no setting {shown(name)}; settings: {', '.join(known)}")


def _check_unchanged(asked: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name, value in asked.items():
        if _first(value) != str(now[name]):
            raise BadRequest(f"{name} is {now[name]!r} here, and cannot be set", hint="it is up to who starts it")


def _sampled(given: Any, rate: int) -> int:
    """The rate, once what is traced is said, if it is."""
    levels = cast("list[Any]", given) if isinstance(given, list) else [given]
    if not all(one in ("OFF", "TIMESTAMPS", None) for one in levels):
        raise BadRequest("trace_level holds something else than OFF and TIMESTAMPS")
    return 0 if "OFF" in levels else rate or (USUAL_RATE if given else 0)


def _rate(given: Any) -> int:
    text = _first(given)
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise BadRequest(f"trace_rate is {shown(text)}, wanted a number from 0 on")
    return int(text)


def _traces(serving: Serving) -> dict[str, Any]:
    rate = serving.trace_rate
    told = {"trace_file": "", "trace_level": ["TIMESTAMPS"] if rate else ["OFF"], "trace_rate": str(rate)}
    return told | {"trace_count": "-1", "log_frequency": "0", "trace_mode": "opentelemetry"}


def log_settings(serving: Serving, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of logs, once those are set that are asked for. Raises Forbidden, BadRequest."""
    if asked:
        serving.check_control()
    now = _logs()
    for name, value in asked.items():
        _check_name(name, now)
        _check_log(name, value, now[name])
    if asked:
        LOGGER.setLevel(_level({**now, **asked}))
    return _logs()


def _check_log(name: str, value: Any, now: Any) -> None:
    if type(value) is not type(now) or (name == "log_verbose_level" and value < 0):
        raise BadRequest(f"{name} is {shown(value)}, wanted one as {now!r}")
    if isinstance(now, str):
        _check_unchanged({name: value}, {name: now})


def _level(wanted: Mapping[str, Any]) -> int:
    """The least level that is wanted."""
    for name, level in _LEVELS.items():
        if wanted[name]:
            return level
    return logging.CRITICAL


_LEVELS: Final = {
    "log_verbose_level": logging.DEBUG,
    "log_info": logging.INFO,
    "log_warning": logging.WARNING,
    "log_error": logging.ERROR,
}


def _logs() -> dict[str, Any]:
    level = LOGGER.getEffectiveLevel()
    told: dict[str, Any] = {name: level <= least for name, least in _LEVELS.items()}
    return told | {"log_verbose_level": int(told["log_verbose_level"]), "log_file": "", "log_format": "default"}


def _first(value: Any) -> str:
    found = cast("list[Any]", value) if isinstance(value, list) else [value]
    return str(found[0]) if found else ""
