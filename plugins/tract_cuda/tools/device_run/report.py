"""What was found as Markdown: a table for each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from device_run.setting import VIRTUAL
from device_run.speed import SEPARATOR

Row = Mapping[str, Any]


def markdown(report: Mapping[str, Any]) -> str:
    """All parts, in order."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    told = report["device"]
    yield "# The first run on a device"
    yield ""
    yield ", ".join(f"{key} {value}" for key, value in told.items()) or "no device was opened"
    if told.get("device") == VIRTUAL:
        yield ""
        yield "This is the virtual GPU: all is computed on the host by an emulator, and nothing was measured."
    for name, part in report["parts"].items():
        yield ""
        yield f"## {name}"
        yield ""
        yield f"{len(part['rows'])} rows in {part['seconds']:.0f} s, {part['ended']}."
        yield ""
        yield from _by_engine(part["rows"]) if name == "speed" else _table(part["rows"])
        yield from _nested(part["rows"])


def _table(rows: Mapping[str, Row]) -> Iterator[str]:
    """A line for each row, a column for each key that any row has."""
    keys = list(
        dict.fromkeys(key for row in rows.values() for key, value in row.items() if not isinstance(value, list))
    )
    if rows:
        yield _line(["", *keys])
        yield _line(["---"] * (len(keys) + 1))
    for what, row in rows.items():
        yield _line([what, *(cell(row.get(key)) for key in keys)])


def _nested(rows: Mapping[str, Row]) -> Iterator[str]:
    """Rows that have tables of their own."""
    for what, row in rows.items():
        for value in row.values():
            if isinstance(value, list) and value and isinstance(value[0], dict):
                yield from ("", f"### {what}", "")
                yield from _table({str(one[next(iter(one))]): dict(list(one.items())[1:]) for one in value})


def _by_engine(rows: Mapping[str, Row]) -> Iterator[str]:
    """A line for each network, batch and precision, milliseconds of each engine, and how far their outputs are off."""
    lines: dict[tuple[str, ...], dict[str, Row]] = {}
    for what, row in rows.items():
        *key, engine = what.split(SEPARATOR)
        if len(key) == 3:
            lines.setdefault(tuple(key), {})[engine] = row
    engines = list(dict.fromkeys(engine for line in lines.values() for engine in line))
    yield _line(["network", "batch", "precision", *(f"{engine}, ms" for engine in engines), "largest difference"])
    yield _line(["---"] * (len(engines) + 4))
    for key, line in lines.items():
        told = [_time(line.get(engine)) for engine in engines]
        differences = [row["difference"] for row in line.values() if "difference" in row]
        yield _line([*key, *told, cell(max(differences)) if differences else ""])
    told = {
        f"{what.split(SEPARATOR)[-1]} is left out: {row['left out']}" for what, row in rows.items() if "left out" in row
    }
    told |= {
        f"{what.replace(SEPARATOR, ', ')} failed: {row['failed']}" for what, row in rows.items() if "failed" in row
    }
    yield from (f"\n{one}" for one in sorted(told))


def _time(row: Row | None) -> str:
    if row is None:
        return ""
    return cell(row.get("ms", row.get("not measured", "left out" if "left out" in row else "failed")))


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(one.replace('|', ',').replace(chr(10), ' ') for one in cells)} |"


def cell(value: Any) -> str:
    """A number with three digits, anything else as it is."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)
