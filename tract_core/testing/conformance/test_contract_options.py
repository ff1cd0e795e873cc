"""The options of a runtime: the fields of its class, kept wherever the runtime goes."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from tract_core.errors import TractError
from tract_core.plugins.parameters import build, given_parameters, parameters_of
from tract_core.testing.checks import Bench
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = [
    "pytest_generate_tests",
    "test_options_are_fields_with_defaults",
    "test_options_are_kept",
    "test_runtime_is_offered_by_its_name",
]


def test_runtime_is_offered_by_its_name(bench: Bench) -> None:
    """A runtime bears the name that it is offered under, and can be made without options."""
    name = bench.runtime.name
    assert bench.registry.load("tract_runtimes", name)().name == name


def test_options_are_fields_with_defaults(bench: Bench) -> None:
    """What can be chosen is a field, so that it can be listed, written as text and kept; nobody has to choose."""
    kind = type(bench.runtime)
    taken = [name for name in inspect.signature(kind).parameters if name not in {"args", "kwargs"}]
    listed = [field.name for field in fields(kind) if field.init] if is_dataclass(kind) else []
    assert taken == listed, f"the class takes {taken}, its fields are {listed}"
    required = [one.key for one in parameters_of(kind) if one.required]
    assert not required, f"options without a default: {', '.join(required)}"


def test_options_are_kept(bench: Bench) -> None:
    """A runtime that is pickled, as its name and its options, comes back with the options that it had."""
    kind, name = type(bench.runtime), bench.runtime.name
    chosen = given_parameters(bench.runtime)
    for given in (chosen, *_others(kind, chosen)):
        try:
            made = build(kind, name, given, "runtime")
        except TractError:
            continue  # a value that this runtime does not have
        kept = given_parameters(made)
        assert kept == given
        again = build(kind, name, pickle.loads(pickle.dumps(kept)), "runtime")
        assert given_parameters(again) == given


def _others(kind: type, chosen: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Other choices: each option that is a number or yes or no with another value."""
    for one in parameters_of(kind):
        if isinstance(one.default, bool):
            yield {**chosen, one.key: not one.default}
        elif isinstance(one.default, int):
            yield {**chosen, one.key: one.default + 1}
