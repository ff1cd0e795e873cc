"""Check what hooks return, before any of it is used, and what their answers lead to, once it is imported.

One function per kind of answer; each gives the answer as a mapping, and raises PluginError saying what was found and
what was wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any, Final, NamedTuple, cast

from tract_core.errors import PluginError
from tract_core.plugins.descriptor import Format, RuntimeOffer, Stage
from tract_core.plugins.tables import TableKey

Offer = Mapping[str, Any]


class Listed(NamedTuple):
    """A module of rows for a table. ``keys``: of its rows, where an index names them, each with its types."""

    module: str
    keys: Mapping[str, tuple[str, ...]] | None = None


def modules(answer: object) -> Offer:
    """``{"table": ["module", ...]}``, or ``{"table": {"module": keys}}`` as `tract_core.plugins.index` has it"""
    checked: dict[str, tuple[Listed, ...]] = {}
    for name, listed in _mapping(answer, "modules by table, as {'reference': ['my_plugin.ops']}").items():
        if isinstance(listed, str) or not hasattr(listed, "__iter__"):
            raise PluginError(f"{name!r} leads to {listed!r}, wanted a list of modules, as ['my_plugin.ops']")
        index = cast("Mapping[Any, Any]", listed if isinstance(listed, Mapping) else {})
        checked[name] = tuple(
            Listed(_text(module, f"a module for {name!r}"), _keys(module, index[module]) if index else None)
            for module in cast("Iterable[Any]", listed)
        )
    return checked


def _keys(module: str, keys: object) -> Mapping[str, tuple[str, ...]]:
    if isinstance(keys, str) or not hasattr(keys, "__iter__"):
        raise PluginError(f"{module!r} leads to {keys!r}, wanted the keys of its rows")
    named = cast("Mapping[Any, Any]", keys if isinstance(keys, Mapping) else dict.fromkeys(cast("list[Any]", keys), ()))
    return {_text(key, f"a key of {module!r}"): tuple(types) for key, types in named.items()}


def references(answer: object) -> Offer:
    """``{"name": "module:attribute"}``"""
    named = _mapping(answer, "texts by name, as {'toy': 'my_plugin.toy:Toy'}")
    for name, reference in named.items():
        if ":" not in _text(reference, f"a text for {name!r}"):
            raise PluginError(f"{name!r} leads to {reference!r}, wanted a text like 'module:attribute'")
    return named


def formats(answer: object) -> Offer:
    """A sequence of `Format`."""
    return _by_name(answer, Format)


def stages(answer: object) -> Offer:
    """A sequence of `Stage`."""
    return _by_name(answer, Stage)


def runtimes(answer: object) -> Offer:
    """``{"name": "module:Class"}``, or a `RuntimeOffer` for one that may be the default."""
    named = _mapping(answer, "texts by name, as {'toy': 'my_plugin.toy:Toy'}")
    offers = {name: one if isinstance(one, RuntimeOffer) else RuntimeOffer(one) for name, one in named.items()}
    references({name: one.loader for name, one in offers.items()})
    return offers


CHECKS: Final[Mapping[str, Callable[[object], Offer]]] = {
    "tract_tables": references,
    "tract_rows": modules,
    "tract_formats": formats,
    "tract_stages": stages,
    "tract_transforms": references,
    "tract_runtimes": runtimes,
    "tract_commands": references,
}
"""The check of each hook's answer."""


def _by_name(answer: object, kind: type[Format] | type[Stage]) -> Offer:
    if not isinstance(answer, (list, tuple)):
        raise PluginError(f"returned {_a(answer)}, wanted a list of {kind.__name__}")
    checked: dict[str, Format | Stage] = {}
    for one in cast("list[object]", answer):
        if not isinstance(one, kind):
            raise PluginError(f"returned a list with {_a(one)}, wanted a list of {kind.__name__}")
        if one.name in checked:
            raise PluginError(f"returned two of the name {one.name!r}")
        checked[one.name] = one
    return checked


def _mapping(answer: object, wanted: str) -> dict[str, Any]:
    if not isinstance(answer, Mapping):
        raise PluginError(f"returned {_a(answer)}, wanted {wanted}")
    return {_text(name, "a name"): value for name, value in cast("Mapping[object, Any]", answer).items()}


def _text(value: object, wanted: str) -> str:
    if not isinstance(value, str) or not value:
        raise PluginError(f"found {value!r}, wanted {wanted}")
    return value


def _a(value: Any) -> str:
    return f"a {type(value).__name__}"


def what_is_wrong(hook: str, part: str, name: str, found: object) -> str | None:
    """Why what an offer leads to is not what its hook wants, or ``None``. ``part``: one of `parts_of` the offer."""
    check = _TARGETS.get((hook, part))
    return None if check is None else check(name, found)


def _table(name: str, found: object) -> str | None:
    if not isinstance(found, TableKey):
        return f"it is {_a(found)}, wanted a tract_core.plugins.TableKey"
    return None if found.name == name else f"it is the key of the table {found.name!r}"


def _with_method(found: object, method: str, wanted: str) -> str | None:
    if not callable(found):
        return f"it is {_a(found)}, wanted {wanted}"
    missing = isinstance(found, type) and not hasattr(found, method)
    return f"{found.__name__} has no method {method!r}" if missing else None


def _loader(name: str, found: object) -> str | None:
    return _with_method(found, "load", "the class of a loader")


def _writer(name: str, found: object) -> str | None:
    return _with_method(found, "write", "the class of a writer")


def _handle(name: str, found: object) -> str | None:
    return None if callable(found) else f"it is {_a(found)}, wanted the class that users hold"


def _transform(name: str, found: object) -> str | None:
    if not isinstance(found, type) or not is_dataclass(found):
        is_class = isinstance(found, type)
        return f"it is {f'the class {found.__name__}' if is_class else _a(found)}, wanted a frozen dataclass"
    if not callable(getattr(found, "apply", None)):
        return f"{found.__name__} has no method 'apply'"
    own = getattr(found, "name", None)
    return None if own == name else f"{found.__name__}.name is {own!r}, wanted {name!r}, under which it is offered"


def _command(name: str, found: object) -> str | None:
    import click

    return None if isinstance(found, click.Command) else f"it is {_a(found)}, wanted a click.Command"


_TARGETS: Final[Mapping[tuple[str, str], Callable[[str, object], str | None]]] = {
    ("tract_tables", ""): _table,
    ("tract_formats", "loader"): _loader,
    ("tract_formats", "writer"): _writer,
    ("tract_formats", "handle"): _handle,
    ("tract_transforms", ""): _transform,
    ("tract_commands", ""): _command,
}


def parts_of(offer: object) -> Mapping[str, str]:
    """What an offer leads to, as ``"module:attribute"``: by the part, of which most have but one, without a name."""
    if isinstance(offer, Stage):
        return {}
    if isinstance(offer, RuntimeOffer):
        return {"": offer.loader}
    if isinstance(offer, Format):
        parts = {"loader": offer.loader, "writer": offer.writer, "handle": offer.handle}
        return {part: reference for part, reference in parts.items() if reference}
    return {"": str(offer)}
