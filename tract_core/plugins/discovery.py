"""Find the installed plugins: the entry points of the group ``tract``, distribution by distribution.

`importlib.metadata.entry_points` stops at the first distribution whose metadata cannot be read; here such a one is
reported and the others are found. No plugin is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import Distribution, distributions

from tract_core.frozen import frozen
from tract_core.plugins.descriptor import PluginRecord

GROUP = "tract"


@frozen
class Found:
    """One entry point: its record, how to import the plugin, and, in its place, why its distribution cannot be read.

    ``load``: what imports the plugin; ``error``: that reason.
    """

    record: PluginRecord
    load: Callable[[], object]
    error: Exception | None = None


def installed_plugins() -> list[Found]:
    """Every installed plugin, by name; of several of one name, that of the distribution ``tract-NAME`` first."""
    return sorted(_all(distributions()), key=_place)


def _place(found: Found) -> tuple[str, bool, str]:
    name, distribution = found.record.name, found.record.distribution
    return name, normal_name(distribution) != normal_name(f"tract-{name}"), distribution


def _all(installed: Iterable[Distribution]) -> Iterator[Found]:
    seen: set[str] = set()
    for distribution in filter(_mentions_us, installed):
        name, version = _name_and_version(distribution)
        try:
            entries = [entry for entry in distribution.entry_points if entry.group == GROUP]
        except Exception as error:  # whatever this one's metadata does, the others are found
            yield Found(PluginRecord(name, name, "", "entry_points.txt"), lambda: None, error)
            continue
        if normal_name(name) in seen:
            continue  # it lies further back on the path, and is hidden by the first of that name
        for entry in entries:
            yield Found(PluginRecord(entry.name, name, version, entry.value), entry.load)
            seen.add(normal_name(name))


def _mentions_us(distribution: Distribution) -> bool:
    """Whether it may have a plugin. Of the many others nothing is parsed: they are no business of ours."""
    try:
        return f"[{GROUP}]" in (distribution.read_text("entry_points.txt") or "")
    except Exception:  # one that cannot be read hides no other
        return False


def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    """As its metadata says; in place of a name that is not there, where it lies."""
    fields: dict[str, str] = {}
    with suppress(Exception):  # without its metadata, its plugin can be used all the same
        metadata = distribution.metadata
        fields = {key.lower(): metadata[key] for key in metadata}
    return fields.get("name") or str(distribution.locate_file("")), fields.get("version") or ""


def normal_name(name: str) -> str:
    """The one spelling of a distribution's name: ``Tract_ONNX`` and ``tract-onnx`` are the same."""
    return re.sub(r"[-_.]+", "-", name).lower()
