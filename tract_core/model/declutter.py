"""Declutter: the rules that bring a model to its normal form; and other sets of rules, by the same machinery."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tract_core.garbage import uncollected
from tract_core.limits import spending
from tract_core.plugins.distributions import CORE
from tract_core.plugins.keys import DECLUTTER

if TYPE_CHECKING:
    from tract_core.model.rewriter import RewriteReport, Rule, RuleSet
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.registry import Registry
    from tract_core.plugins.tables import TableKey

_SETS: WeakKeyDictionary[Registry, dict[str, RuleSet]] = WeakKeyDictionary()
"""A set knows which of its rules look at which operators, so it is made once per registry and table."""


def declutter_rules(registry: Registry | None = None) -> RuleSet:
    """Every rule of the ``declutter`` table, the core's first."""
    from tract_core.plugins import default_registry

    return rules_of(DECLUTTER, registry or default_registry())


def rules_of(key: TableKey[str, Any], registry: Registry) -> RuleSet:
    """Every rule of a table, the core's first."""
    from tract_core.model.rewriter import ListedRule, RuleSet

    table, sets = registry[key], _SETS.setdefault(registry, {})
    found = sets.get(key.name)
    if found is None or [one.name for one in found.listed] != table.names():
        found = sets[key.name] = RuleSet(ListedRule(name, table) for name in table.names())
    return found


def declutter(model: TypedModel, *, check: bool | None = None, max_patches: int | None = None) -> TypedModel:
    """Bring ``model`` to its normal form, in place; returns it, its nodes renumbered in an order of evaluation."""
    declutter_with_report(model, check=check, max_patches=max_patches)
    return model


def declutter_with_report(
    model: TypedModel, *, check: bool | None = None, max_patches: int | None = None
) -> RewriteReport:
    """Like `declutter`; returns what was done."""
    return rewrite_by(DECLUTTER, model, check=check, max_patches=max_patches)


def rewrite_by(
    key: TableKey[str, Any], model: TypedModel, *, check: bool | None = None, max_patches: int | None = None
) -> RewriteReport:
    """Rewrite ``model`` in place by the rules of a table, until none applies; returns what was done.

    Runtimes and archives bring models to forms of their own so, behind declutter: the table is one of their
    `tract_core.plugins.keys.table_of_rules`, to which other distributions can add.
    """
    from tract_core.model.rewriter import Rewriter

    registry = model.registry
    forgive, describe = partial(_forgive, registry, key), partial(_describe, registry, key)
    rules = rules_of(key, registry)
    rewriter = Rewriter(rules, check=check, max_patches=max_patches, forgive=forgive, describe=describe)
    with spending(model.limits.for_rewriting), uncollected():
        report = rewriter.rewrite(model)
    model.compact()
    return report


def _forgive(registry: Registry, key: TableKey[str, Any], rule: Rule, error: Exception) -> bool:
    """A plugin's rule that fails is left out; the core's own are not allowed to."""
    return registry.set_aside(key, rule.name, "rule", error)


def _describe(registry: Registry, key: TableKey[str, Any], name: str) -> str:
    """A rule, and the distribution that brought it where that is not the core."""
    owner = registry[key].owner(name)
    return f"rule {name}" if owner in (None, CORE) else f"rule {name} of {owner}"
