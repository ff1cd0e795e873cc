"""What the user asserted of the graph and of the outputs, checked. Every failure is reported, not only the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.cli.inputs import whole_inputs_for
from tract_core.cli.signals import outputs_for
from tract_core.cli.values import holds_floats, of_type, read_bundle
from tract_core.data import DatumType
from tract_core.errors import InputError, TractError, meant
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact, parse_values
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import AXES, COST, REFERENCE, STATE

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.plugins import Registry
    from tract_core.testing.tolerance import Tolerance

Array = np.ndarray[Any, Any]


class AssertionFailed(TractError):
    """Something that the user asserted does not hold."""


@frozen
class Assertions:
    """The assertion flags, under the names that `options.assertion_options` gives them.

    Its fields are said by the help of these flags.
    """

    _: KW_ONLY
    approx: str = "close"
    approx_custom: Tolerance | None = None
    assert_output: tuple[str, ...] = ()
    assert_output_bundle: str | None = None
    allow_missing_outputs: bool = False
    assert_output_fact: tuple[str, ...] = ()
    assert_output_count: int | None = None
    assert_op_count: tuple[tuple[str, int], ...] = ()
    assert_op_only: str | None = None
    float_casts: bool = False

    @staticmethod
    def of(flags: Mapping[str, Any]) -> Assertions:
        """What the flags of a subcommand assert; flags that it has not are at their defaults."""
        return Assertions(**{one.name: flags[one.name] for one in fields(Assertions) if one.name in flags})

    def check_graph(self, model: TypedModel) -> None:
        """Raise AssertionFailed unless operators and output facts are as asserted."""
        _report([*self._operators(model), *self._facts(model)])

    def check_outputs(self, model: TypedModel, outputs: Sequence[Array]) -> None:
        """Raise AssertionFailed unless the outputs have the asserted values."""
        names = [model.outlet_name(outlet) for outlet in model.outputs]
        _report(self._values(model, names, dict(zip(names, outputs, strict=True))))

    @property
    def wants_outputs(self) -> bool:
        """Whether an assertion is about values."""
        return bool(self.assert_output or self.assert_output_bundle)

    def tolerance(self, kind: DatumType) -> Tolerance:
        """How close values of an element type must be."""
        from tract_core.testing.tolerance import approx_class

        return self.approx_custom or approx_class(self.approx, kind)

    def difference(self, found: Array, wanted: Array) -> str | None:
        """How a value differs from the one that is wanted; ``None`` where they agree."""
        from tract_core.testing.tolerance import mismatch

        wanted = of_type(wanted, found.dtype)
        if found.dtype != wanted.dtype and not (self.float_casts and holds_floats(found) and holds_floats(wanted)):
            return f"element type is {found.dtype}, wanted {wanted.dtype}"
        return mismatch(np.asarray(found), wanted, self.tolerance(DatumType.from_numpy(found.dtype)))

    def _operators(self, model: TypedModel) -> list[str]:
        counts = Counter(node.op.name for node in model.live_nodes())
        known = counts.keys() | set(operators(model.registry))
        for op, _ in self.assert_op_count:
            if op not in known:
                raise _unknown_operator("--assert-op-count", op, known)
        problems = [
            f"there are {counts[op]} nodes of {op}, not {wanted}"
            for op, wanted in self.assert_op_count
            if counts[op] != wanted
        ]
        if self.assert_op_only is not None:
            patterns = [pattern.strip() for pattern in self.assert_op_only.split(",")]
            for pattern in patterns:
                if not any(fnmatchcase(op, pattern) for op in known):
                    raise _unknown_operator("--assert-op-only", pattern, known)
            others = sorted(op for op in counts if not any(fnmatchcase(op, pattern) for pattern in patterns))
            problems += [
                f"there are {counts[op]} nodes of {op}, only {self.assert_op_only} are allowed" for op in others
            ]
        return problems

    def _facts(self, model: TypedModel) -> list[str]:
        facts = [model.outlet_fact(outlet) for outlet in model.outputs]
        problems: list[str] = []
        if self.assert_output_count is not None and len(facts) != self.assert_output_count:
            problems.append(f"the model has {len(facts)} outputs, not {self.assert_output_count}")
        for slot, text in enumerate(self.assert_output_fact):
            wanted = parse_typed_fact(text)
            found = facts[slot] if slot < len(facts) else None
            if found is None or (found.datum_type, tuple(found.shape)) != (wanted.datum_type, tuple(wanted.shape)):
                problems.append(f"output {slot} is {found or 'missing'}, not {wanted}")
        return problems

    def _values(self, model: TypedModel, names: Sequence[str], outputs: Mapping[str, Array]) -> list[str]:
        expected = [self._literal(names, slot, text) for slot, text in enumerate(self.assert_output)]
        if self.assert_output_bundle is not None:
            bundle = read_bundle(self.assert_output_bundle)
            self._check_names(model, names, bundle)
            missing = [name for name in names if name not in bundle]
            if missing and not self.allow_missing_outputs:
                return [
                    f"the bundle has no output {name!r}; it has {', '.join(bundle) or 'nothing'}" for name in missing
                ]
            expected += [(name, bundle[name]) for name in names if name in bundle]
        return [
            f"output {name!r}: {problem}"
            for name, wanted in expected
            if (problem := self.difference(outputs[name], wanted)) is not None
        ]

    def _check_names(self, model: TypedModel, names: Sequence[str], bundle: Collection[str]) -> None:
        """Raises InputError for arrays that would be compared with nothing; inputs may be in the same bundle."""
        path = self.assert_output_bundle
        inputs = {model.outlet_name(outlet) for outlet in model.inputs}
        unknown = [name for name in bundle if name not in inputs and name not in names]
        if unknown:
            raise InputError(
                f"no output is named {', '.join(map(repr, unknown))}",
                where=path,
                hint=f"{nearest(unknown[0], names)}; 'compare --npz' compares other tensors too",
            )
        if not set(names) & set(bundle):
            raise InputError(f"no array in it names an output; it has {', '.join(bundle) or 'nothing'}", where=path)

    def _literal(self, names: Sequence[str], slot: int, text: str) -> tuple[str, Array]:
        named_fact, equals, values = text.partition("=")
        head, _, tail = named_fact.rpartition(":")
        if not equals or (not head and slot >= len(names)) or (head and head not in names):
            raise InputError(f"--assert-output {text!r} is not [NAME:]FACT=VALUES", hint=f"outputs: {', '.join(names)}")
        fact: TypedFact = parse_typed_fact(tail if head else named_fact)
        return head or names[slot], parse_values(fact, values)


def operators(registry: Registry) -> list[str]:
    """The names of the operators that typed models are made of, the core's and those of installed plugins."""
    rows = [registry[REFERENCE].names(), registry[STATE].names(), registry[COST].names(), registry[AXES].names()]
    return sorted({key.rpartition(":")[2] for table in rows for key in table} | {TypedSource.__name__})


def nearest(name: str, there: Collection[str]) -> str:
    """What may have been meant by a name that is not there."""
    near = meant(name, there, 3)
    return f"did you mean {', '.join(near)}?" if near else f"there are: {', '.join(sorted(there)) or 'none'}"


def _unknown_operator(flag: str, name: str, known: Collection[str]) -> InputError:
    lowered = {one.lower(): one for one in known}
    near = [lowered[one] for one in meant(name.lower(), lowered, 3)]
    listed = f"did you mean {', '.join(near)}? " if near else ""
    return InputError(
        f"{flag}: no operator is named {name!r}",
        hint=f"{listed}'tract list-ops' names those that models are made of here, which are not those of the file",
    )


def _report(problems: Sequence[str]) -> None:
    if problems:
        listed = problems[0] if len(problems) == 1 else "\n".join(["", *(f"  {problem}" for problem in problems)])
        raise AssertionFailed(f"does not hold: {listed}")


def check_outputs(request: Request, model: TypedModel, flags: dict[str, Any], arrays: Any = None) -> None:
    """Run the model and check its outputs, when the flags assert something of them. ``arrays``: its whole inputs."""
    assertions = Assertions.of(flags)
    if assertions.wants_outputs:
        given = whole_inputs_for(request, model, flags) if arrays is None else arrays
        with request.progress("running"):
            outputs = outputs_for(request, model, given)
        assertions.check_outputs(model, outputs)


def asserts_anything(flags: dict[str, Any]) -> bool:
    """Whether the flags assert something of the graph or of the outputs."""
    return Assertions.of(flags) != Assertions()


def check_assertions(model: TypedModel, flags: dict[str, Any]) -> None:
    """Check what the flags assert of the graph."""
    Assertions.of(flags).check_graph(model)
