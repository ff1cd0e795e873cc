"""Declutter: the rules that bring a model to its normal form."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from tract_core.limits import spending
from tract_core.plugins.descriptor import CORE
from tract_core.plugins.keys import DECLUTTER

if TYPE_CHECKING:
    from tract_core.model.rewriter import RewriteReport, Rule, RuleSet
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.registry import Registry

_SETS: WeakKeyDictionary[Registry, RuleSet] = WeakKeyDictionary()
"""A set knows which of its rules look at which operators, so it is made once per registry."""


def declutter_rules(registry: Registry | None = None) -> RuleSet:
    """Every rule of the ``declutter`` table, the core's first."""
    from tract_core.model.rewriter import ListedRule, RuleSet
    from tract_core.plugins import default_registry

    registry = registry or default_registry()
    table = registry[DECLUTTER]
    found = _SETS.get(registry)
    if found is None or [one.name for one in found.listed] != table.names():
        found = _SETS[registry] = RuleSet(ListedRule(name, table) for name in table.names())
    return found


def declutter(model: TypedModel, *, check: bool | None = None, max_patches: int | None = None) -> TypedModel:
    """Bring ``model`` to its normal form, in place; returns it, its nodes renumbered in an order of evaluation."""
    declutter_with_report(model, check=check, max_patches=max_patches)
    return model


def declutter_with_report(
    model: TypedModel, *, check: bool | None = None, max_patches: int | None = None
) -> RewriteReport:
    """Like `declutter`; returns what was done."""
    from tract_core.model.rewriter import Rewriter

    rules, registry = declutter_rules(model.registry), model.registry
    forgive, describe = partial(_forgive, registry), partial(_describe, registry)
    rewriter = Rewriter(rules, check=check, max_patches=max_patches, forgive=forgive, describe=describe)
    with spending(model.limits.for_rewriting):
        report = rewriter.rewrite(model)
    model.compact()
    return report


def _forgive(registry: Registry, rule: Rule, error: Exception) -> bool:
    """A plugin's rule that fails is left out; the core's own are not allowed to."""
    return registry.set_aside(DECLUTTER, rule.name, "rule", error)


def _describe(registry: Registry, name: str) -> str:
    """A rule, and the distribution that brought it where that is not the core."""
    owner = registry[DECLUTTER].owner(name)
    return f"rule {name}" if owner in (None, CORE) else f"rule {name} of {owner}"
