"""Apply rules to a model until none applies.

A rule looks at one node and returns a `ModelPatch` or ``None``; it changes nothing itself. The `Rewriter` keeps a work
list: every node is looked at once, and again whenever a patch touched it or its neighbours.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tract_core.dims.theory import Theory
from tract_core.errors import DimError, FactError, GraphError, PluginError, RegistrationError
from tract_core.frozen import frozen
from tract_core.limits import count_node
from tract_core.model.demands import demands
from tract_core.model.forgotten import forgets
from tract_core.model.graph import VACANT
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch, PatchResult
from tract_core.model.refine import simplify_sizes
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import what_is_wrong_with_types
from tract_core.plugins.tables import Table, key_text

RuleFn = Callable[[TypedModel, TypedNode, Any], "ModelPatch | None"]

ANY_OP: type = object
"""For rules that want to see every node."""


@frozen
class Rule:
    """A rewrite: its name, the operator types (or base classes) that it looks at, and the function.

    ``on``: these types.
    """

    name: str
    on: tuple[type, ...]
    function: RuleFn

    def looks_at(self, op_type: type) -> bool:
        """Whether it looks at operators of a type."""
        bases = op_type.__mro__  # `issubclass` refuses protocols
        return any(kind in bases for kind in self.on)

    def rule(self) -> Rule:
        """Itself."""
        return self

    def __call__(self, model: TypedModel, node: TypedNode) -> ModelPatch | None:
        """The patch for one node, or ``None`` when the pattern is not there."""
        return self.function(model, node, node.op)


def rewrites(*on: type) -> Callable[[RuleFn], Rule]:
    """Decorator: make a rule, named after the function, that looks at operators of these types.

    Raises RegistrationError for anything but types, as where the decorator is given the function itself.
    """
    problem = what_is_wrong_with_types(on)
    if problem is not None:
        raise RegistrationError(f"@rewrites {problem}", hint="write it as @rewrites(Relu), above the function")

    def make(function: RuleFn) -> Rule:
        return Rule(getattr(function, "__name__", repr(function)), on, function)

    return make


@cache
def _texts(op_type: type) -> frozenset[str]:
    """The texts of a type and of its bases."""
    return frozenset(map(key_text, op_type.__mro__))


@frozen
class ListedRule:
    """A rule of a table, whose module is imported when there is an operator of a type that it looks at.

    ``name``: of the rule.
    """

    name: str
    table: Table[str, Rule]

    def looks_at(self, op_type: type) -> bool:
        """Whether it looks at operators of a type. Imports nothing."""
        return not _texts(op_type).isdisjoint(self.table.types(self.name))

    def rule(self) -> Rule | None:
        """The rule; ``None`` where its module cannot be imported, which the registry has reported."""
        return self.table.find(self.name)


class RuleSet:
    """An ordered collection of rules. Sets can be added together; a name that stands twice is an error."""

    def __init__(self, rules: Iterable[Rule | ListedRule] = ()) -> None:
        self.listed = tuple(rules)
        twice = [name for name, count in Counter(rule.name for rule in self.listed).items() if count > 1]
        if twice:
            raise GraphError(f"two rules are named {twice[0]!r}", hint="rename one of them")
        self._by_type: dict[type, tuple[Rule, ...]] = {}

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet([*self.listed, *other.listed])

    def __iter__(self) -> Iterator[Rule]:
        """Every rule; their modules are imported."""
        return (rule for one in self.listed if (rule := one.rule()) is not None)

    def __len__(self) -> int:
        return len(self.listed)

    def without(self, *names: str) -> RuleSet:
        """The set with the rules of these names left out."""
        return RuleSet(rule for rule in self.listed if rule.name not in names)

    def for_type(self, op_type: type) -> tuple[Rule, ...]:
        """The rules that look at operators of a type, in order."""
        try:
            return self._by_type[op_type]
        except KeyError:
            found = [one.rule() for one in self.listed if one.looks_at(op_type)]
            return self._by_type.setdefault(op_type, tuple(rule for rule in found if rule is not None))


@dataclass(slots=True)
class RewriteReport:
    """What a run of a `Rewriter` did: looks at nodes, by node name, and patches, by rule name."""

    visits: Counter[str] = field(default_factory=Counter[str])
    patches: Counter[str] = field(default_factory=Counter[str])

    @property
    def changed(self) -> bool:
        """Whether any patch was applied."""
        return bool(self.patches)


_CHECKING: ContextVar[bool] = ContextVar("_CHECKING", default=False)


@contextmanager
def checking_patches() -> Generator[None]:
    """Within, rewriters verify the whole model after every patch, unless they are told not to."""
    token = _CHECKING.set(True)
    try:
        yield
    finally:
        _CHECKING.reset(token)


def checks_wanted() -> bool:
    """Whether `checking_patches`, or the variable ``TRACT_CHECK_PATCHES``, asks for a check after every patch."""
    return _CHECKING.get() or os.environ.get("TRACT_CHECK_PATCHES", "") not in ("", "0")


class Rewriter:
    """A set of rules and the driver that applies them to a fixpoint. It keeps nothing of a model that it has rewritten.

    ``check``: verify the whole model after every patch (default: see `checks_wanted`).
    ``max_patches``: stop after so many patches (for finding the patch that breaks something); ``None`` is no limit.
    ``forgive``: asked about a rule that raised; when it says yes, this model is rewritten without that rule.
    ``describe``: what messages call the rule of a name.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        check: bool | None = None,
        max_patches: int | None = None,
        forgive: Callable[[Rule, Exception], bool] | None = None,
        describe: Callable[[str], str] = "rule {}".format,
    ) -> None:
        self.rules = rules if isinstance(rules, RuleSet) else RuleSet(rules)
        self.check = checks_wanted() if check is None else check
        self.max_patches = max_patches
        self.forgive = forgive
        self.describe = describe

    def with_rule_for(self, name: str, on: type[TypedOp], function: RuleFn) -> Rewriter:
        """The rewriter with one more rule."""
        rules = self.rules + RuleSet([Rule(name, (on,), function)])
        return Rewriter(
            rules, check=self.check, max_patches=self.max_patches, forgive=self.forgive, describe=self.describe
        )

    def rewrite(self, model: TypedModel) -> RewriteReport:
        """Rewrite ``model`` in place until no rule applies to any node.

        The work list holds every node once, and again the surroundings of each patch; a rule may have looked further
        than that, so rounds follow until one changes nothing. Raises GraphError when the rules do not come to an end,
        naming those that fired most.
        """
        model.prune()
        rewriting = _Rewriting(self, model, self.rules, patch_limit=32 * len(model.nodes) + 1024)
        patches, done = rewriting.report.patches, -1
        while done < patches.total() != self.max_patches:
            done = patches.total()
            with np.errstate(all="ignore"):
                rewriting.round()
        return rewriting.report


@dataclass(slots=True)
class _Rewriting:
    """One model being rewritten.

    ``rules``: those that are left; ``impossible``: no run can satisfy the model. ``known``: what was known of sizes
    when all that were wired before were simplified.
    """

    rewriter: Rewriter
    model: TypedModel
    rules: RuleSet
    patch_limit: int
    report: RewriteReport = field(default_factory=RewriteReport)
    impossible: bool = False
    known: tuple[Theory, int] | None = None

    def round(self) -> None:
        """Look at every node once, and again at the surroundings of each patch."""
        model, patches = self.model, self.report.patches
        known = model.known, model.known.version
        if known != self.known:
            simplify_sizes(model)
            self.known = model.known, model.known.version
        order = _constants_first(model)
        pending, queued = deque(order), set(order)
        while pending:
            count_node()
            node_id = pending.popleft()
            queued.discard(node_id)
            if model.nodes[node_id].op is VACANT:
                continue
            result = self._visit(node_id)
            if result is None:
                continue
            if patches.total() == self.rewriter.max_patches:
                return
            if patches.total() > self.patch_limit:
                raise self._no_end(node_id)
            for touched in [node_id, *result.added, *result.touched]:
                if touched not in queued:
                    queued.add(touched)
                    pending.append(touched)

    def _no_end(self, node_id: int) -> GraphError:
        most = self.report.patches.most_common(3)
        rules = ", ".join(f"{self.rewriter.describe(name)} ({count} times)" for name, count in most)
        return GraphError(
            f"the rules do not come to an end; applied most: {rules}",
            where=f"node {self.model.nodes[node_id].name!r}",
            hint="a rule returns None where there is nothing left to do",
        )

    def _visit(self, node_id: int) -> PatchResult | None:
        model, node = self.model, self.model.nodes[node_id]
        op = node.op
        rules = self.rules.for_type(type(op))
        if not rules or not _is_read(model, node):
            return None
        self.report.visits[node.name] += 1
        for rule in rules:
            try:
                try:
                    found = rule.function(model, node, op)
                    if found is None:
                        continue  # as nearly always, which is why this is no function of its own
                    patch = self._fitting(found, node)
                except Exception as error:  # nothing has changed yet
                    self._do_without(rule, error)
                    continue
                if patch is None:
                    continue
                result = patch.apply()
                if self.rewriter.check:
                    self.model.check_consistency()
            except Exception as error:
                error.add_note(f"while {self.rewriter.describe(rule.name)} looked at node {node}")
                raise
            self.report.patches[rule.name] += 1
            return result
        return None

    def _fitting(self, found: object, node: TypedNode) -> ModelPatch | None:
        """What a rule returned; ``None`` for a patch that takes a refusal out of the model, or brings one into it."""
        patch = _checked(self.model, found)
        return None if forgets(patch) or demands(patch, node) else patch

    def _do_without(self, rule: Rule, error: Exception) -> None:
        """Leave out a rule that raised where that is forgiven, else raise its error.

        In a model that no run can satisfy, as sizes that became known contradict each other, what cannot be wired stays
        as it is, and refuses: there the rule stays.
        """
        if isinstance(error, (DimError, FactError, GraphError)):
            self.impossible = self.impossible or self.model.is_impossible()
            if self.impossible:
                return
        forgive = self.rewriter.forgive
        if forgive is None or not forgive(rule, error):
            raise error
        self.rules = self.rules.without(rule.name)


def _checked(model: TypedModel, found: object) -> ModelPatch:
    """What a rule returned. Raises PluginError when it is no patch of the model."""
    if not isinstance(found, ModelPatch):
        hint = "as ModelPatch.replace_op(model, node, op), or None where there is nothing to do"
        raise PluginError(f"it returned a {type(found).__name__}, wanted a ModelPatch or None", hint=hint)
    if found.target is not model:
        raise PluginError("it returned a patch of another model", hint="make it with the model that the rule is given")
    if not found.shunts:
        hint = "say with patch.shunt(old, new) what takes the place of what, or return None"
        raise PluginError("it returned a patch that replaces nothing", hint=hint)
    return found


def _is_read(model: TypedModel, node: TypedNode) -> bool:
    """Whether anything reads a node, or it checks something.

    One that only stays because it binds a symbol is as simple as it can be.
    """
    for outlet in node.outputs:
        if outlet.successors:
            return True
    return node.op.checks or any(map(model.is_interface, node.outlets()))


def _constants_first(model: TypedModel) -> list[int]:
    """The nodes that the outputs need, each after what it reads; those that depend on no input of the model first.

    A rule that wants a constant so finds it computed.
    """
    order, nodes = model.eval_order(), model.nodes
    given = {outlet.node for outlet in model.inputs}
    for node_id in order:
        for outlet in nodes[node_id].inputs:
            if outlet[0] in given:
                given.add(node_id)
                break
    return [node_id for node_id in order if node_id not in given] + [node_id for node_id in order if node_id in given]
