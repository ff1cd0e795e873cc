"""Find the installed plugins: the entry points of the group ``tract``, distribution by distribution.

`importlib.metadata.entry_points` stops at the first distribution whose metadata cannot be read; here such a one is
reported and the others are found. No plugin is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import Distribution, EntryPoint, distributions

from tract_core.frozen import frozen
from tract_core.plugins.descriptor import PluginRecord

GROUP = "tract"


@frozen
class Found:
    """One entry point: its record, how to import the plugin, and, in its place, why its distribution cannot be read."""

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
    for distribution in installed:
        try:
            entries = [entry for entry in distribution.entry_points if entry.group == GROUP]
            name = normal_name(_name_of(distribution)) if entries else ""
        except Exception as error:  # whatever this one's metadata does, the others are found
            yield from _unreadable(distribution, error)
            continue
        if name not in seen:  # a second one of the same name lies further back on the path and is hidden by the first
            yield from (_found(distribution, entry) for entry in entries)
        if entries:
            seen.add(name)


def _found(distribution: Distribution, entry: EntryPoint) -> Found:
    version = _field(distribution, "Version")
    return Found(PluginRecord(entry.name, _name_of(distribution), version, entry.value), entry.load)


def _unreadable(distribution: Distribution, error: Exception) -> Iterator[Found]:
    """A distribution that has a plugin; nothing for one that does not mention us, as it is no business of ours."""
    try:
        text = distribution.read_text("entry_points.txt") or ""
        name = _name_of(distribution)
    except Exception:
        return
    if f"[{GROUP}]" in text:
        yield Found(PluginRecord(name, name, "", "entry_points.txt"), lambda: None, error)


def _name_of(distribution: Distribution) -> str:
    """Its name; where it lies, when its metadata has none."""
    return _field(distribution, "Name") or str(distribution.locate_file(""))


def _field(distribution: Distribution, name: str) -> str:
    metadata = distribution.metadata  # parsed anew each time
    for key in metadata:
        if key.lower() == name.lower():
            return metadata[key]
    return ""


def normal_name(name: str) -> str:
    """The one spelling of a distribution's name: ``Tract_ONNX`` and ``tract-onnx`` are the same."""
    return re.sub(r"[-_.]+", "-", name).lower()
