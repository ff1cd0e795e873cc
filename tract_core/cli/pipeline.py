"""The stages of loading, in order, as the global flags ask for them.

load → analyse → incorporate → type → declutter → each transform → set → set-declutter → before-optimize → optimize,
and those that plugins put between them, each of which is a transform with a flag of its own. Each stage works on the
result of the one before; `Pipeline.at` computes it anew for a stage that was passed, as stages change the model in
place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tract_core.analysis.cut import set_inputs
from tract_core.analysis.findings import Examination
from tract_core.analysis.inference import InferenceModel
from tract_core.api.formats import find_format
from tract_core.api.given import is_url
from tract_core.api.reading import load_with
from tract_core.cli.formats import loader_with
from tract_core.cli.readings import array_file
from tract_core.cli.stages import stages
from tract_core.cli.values import read_array, read_bundle
from tract_core.data import Constant, DatumType
from tract_core.errors import InputError, TractError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.model.fact import InferenceFact
from tract_core.model.fact_text import parse_inference_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins import default_registry
from tract_core.plugins.keys import Array
from tract_core.runtime.protocol import running_model

if TYPE_CHECKING:
    from tract_core.cli.global_flags import GlobalFlags
    from tract_core.model.rewriter import RewriteReport
    from tract_core.runtime.protocol import Plan
    from tract_core.transforms.transform import Transform

AnyModel = InferenceModel | TypedModel


class Pipeline:
    """Brings the model that the global flags name to any stage.

    ``say``: told what is being done. ``prepare``: makes a model ready to run, for the last stage.
    ``constants``: the values of the file's inputs that the flags made constants, by name, once a model was loaded.
    ``before_transform``: told of each transform, and of the model that it is about to be applied to.
    """

    def __init__(self, flags: GlobalFlags, say: Callable[[str], None], prepare: Callable[[TypedModel], Plan]) -> None:
        self.flags = flags
        self._say = say
        self._prepare = prepare
        self.plan: Plan | None = None
        self.constants: dict[str, Array] = {}
        self.before_transform: Callable[[Transform, TypedModel], None] = _nothing

    def at(self, stage: str) -> AnyModel:
        """The model as it is after ``stage``, freshly made. Raises TractError."""
        return self.onwards(self._overridden(load_with(self._loader(), self.path)), stage)

    @cached_property
    def _found(self) -> tuple[str, Path]:
        if not self.flags.model:
            raise InputError("the path of MODEL is empty")
        return find_format(_source(self.flags.model, self.flags.limits), self.flags.format_name)

    def _loader(self) -> Any:
        """What loads the format, as the flags say. Raises InputError."""
        return loader_with(self.format_name, self.flags.of_format, self.flags.limits)

    @property
    def format_name(self) -> str:
        """The format of the model. Raises InputError."""
        return self._found[0]

    @property
    def path(self) -> Path:
        """Where the model is. Raises InputError."""
        return self._found[1]

    def examine(self) -> Examination:
        """All that is wrong with the file, and the model in it, as the flags change it. Raises InputError."""
        loader = self._loader()
        try:
            with default_registry().blaming("tract_formats", self.format_name, "a report"):
                examine = getattr(loader, "examine", None)
                found: Examination = examine(self.path) if examine else Examination(load_with(loader, self.path))
        except TractError as error:
            found = Examination(None, (error,))
        if found.model is not None:
            self._overridden(found.model)
        return found

    def onwards(self, model: AnyModel, stage: str, after: str = "load") -> AnyModel:
        """The model, which is at the stage ``after``, as it is after ``stage``. It may be changed in place."""
        steps: dict[str, Callable[[AnyModel], AnyModel]] = {
            "analyse": self._analyse,
            "incorporate": lambda model: model,
            "type": wired,
            "declutter": self._declutter,
            "set": self._set,
            "set-declutter": self._set_declutter,
            "before-optimize": lambda model: model,
            "optimize": self._optimize,
        }
        names = stages()
        for name in names[names.index(after) + 1 : names.index(stage) + 1]:
            self._say(f"{name}:")
            model = steps[name](model) if name in steps else self._added(name, model)
        return model

    def context_of(self, name: str) -> tuple[int, int]:
        """How many frames an input gets before and after its own."""
        both = self.flags.left_context, self.flags.right_context
        before, after = (sum(one.frames for one in side if one.name in ("", name)) for side in both)
        return before, after

    def _overridden(self, model: AnyModel) -> AnyModel:
        """The model as the flags change what the file says."""
        for assertion in self.flags.assertions:
            model.symbols.add_assertion(assertion)
        if isinstance(model, InferenceModel):
            self._override(model)
        return model

    def _override(self, model: InferenceModel) -> None:
        """Everything that the flags say about the file's own graph."""
        if self.flags.input_nodes:
            set_inputs(model, self.flags.input_nodes)
        if self.flags.output_nodes:
            model.set_outputs(model.outlet_named(name) for name in self.flags.output_nodes)
        for index, text in enumerate(text for text in self.flags.inputs if array_file(text) is None):
            name, fact = _named_fact(model, text)
            outlet = _input_named(model, name) if name is not None else _input_at(model, index, text)
            _set_input(model, outlet, fact, text)
        bundle = read_bundle(self.flags.facts_bundle) if self.flags.facts_bundle is not None else {}
        if self.flags.facts_bundle is not None:
            _facts_from_bundle(model, bundle, self.flags.facts_bundle)
        for text in self.flags.override_fact:
            name, fact = _named_fact(model, text)
            model.set_outlet_fact(model.outlet_named(name or ""), fact)
        files = dict(filter(None, map(array_file, self.flags.inputs)))
        arrays = {**bundle, **{name: read_array(files[name]) for name in self.flags.constantize if name in files}}
        for name in self.flags.constantize:
            _constantize(model, name, arrays)
        known = {model.outlet_name(outlet): model.outlet_fact(outlet).value for outlet in model.inputs}
        self.constants = {name: value.array for name, value in known.items() if value is not None}
        for context in (*self.flags.left_context, *self.flags.right_context):
            if context.name:
                _input_named(model, context.name)
        for outlet in model.inputs:
            before, after = self.context_of(model.outlet_name(outlet))
            if before or after:
                from tract_core.analysis.edge_context import add_edge_context

                add_edge_context(model, outlet, before, after)

    def _analyse(self, model: AnyModel) -> AnyModel:
        return model.analyse() if isinstance(model, InferenceModel) else model

    def _declutter(self, model: AnyModel) -> AnyModel:
        from tract_core.rules import declutter_with_report
        from tract_core.transforms.lookup import transform_like

        model = _typed(model)
        self._tell(declutter_with_report(model, max_patches=self.flags.declutter_step))
        for text in self.flags.transforms:
            model = self._transformed(model, transform_like(text, default_registry()))
        return model

    def _added(self, name: str, model: AnyModel) -> AnyModel:
        """The model after a stage that a plugin adds: as it is, where its flag was not given."""
        from tract_core.transforms.lookup import transform_named

        if name not in self.flags.staged:
            return model
        stage = default_registry().stages()[name]
        values = self.flags.settings_of(stage.settings_of)
        if stage.parameter:
            values[stage.parameter] = self.flags.staged[name]
        return self._transformed(_typed(model), transform_named(stage.transform, values, default_registry()))

    def _transformed(self, model: TypedModel, transform: Transform) -> TypedModel:
        from tract_core.transforms.apply import apply_transform

        self.before_transform(transform, model)
        return apply_transform(model, transform)

    def _tell(self, report: RewriteReport) -> None:
        """With ``-v``: how many nodes were looked at, and which rules changed how many."""
        if self.flags.verbose:
            looks, patches = report.visits.total(), report.patches.total()
            click.echo(f"declutter: {looks} looks at {len(report.visits)} nodes, {patches} patches", err=True)
            for rule, count in report.patches.most_common():
                click.echo(f"  {count:5} {rule}", err=True)

    def _set(self, model: AnyModel) -> AnyModel:
        if not self.flags.settings:
            return model
        values = dict(self.flags.settings)
        unknown = values.keys() - _symbols_of(_typed(model))
        if unknown:
            known = ", ".join(sorted(_symbols_of(_typed(model)))) or "none"
            raise InputError(f"--set: no symbol {', '.join(sorted(unknown))} in the model; it has {known}")
        return _typed(model).substitute(values)

    def _set_declutter(self, model: AnyModel) -> AnyModel:
        return _typed(model).declutter() if self.flags.settings else model

    def _optimize(self, model: AnyModel) -> AnyModel:
        self.plan = self._prepare(_typed(model))
        return running_model(self.plan, _typed(model))


def _source(model: str, limits: LoadLimits | None) -> Path:
    """Where MODEL is; one at a URL is fetched, which is told."""
    if not is_url(model):
        return Path(model)
    from tract_core.remote_files import fetched

    return fetched(model, limits or DEFAULT_LIMITS, lambda text: click.echo(text, err=True))


def _nothing(*_: object) -> None:
    """What is done before a transform, unless somebody wants more."""


def wired(model: AnyModel) -> TypedModel:
    """The model in core operators. Raises ModelError, listing every node that cannot be wired and why."""
    return model.into_typed() if isinstance(model, InferenceModel) else model


def _typed(model: AnyModel) -> TypedModel:
    if not isinstance(model, TypedModel):
        raise InputError("the model is not typed yet")
    return model


def _symbols_of(model: TypedModel) -> set[str]:
    from tract_core.model.substitute import symbols_in

    return set(symbols_in(model)).difference(name for name, _ in model.symbols.definitions)


def _named_fact(model: InferenceModel, text: str) -> tuple[str | None, InferenceFact]:
    """The name, if any, and the fact of ``[NAME:]FACT`` or ``[NAME:]FACT=VALUES``."""
    named_fact, equals, values = text.partition("=")
    names = {model.outlet_name(outlet) for outlet in model.inputs} | {node.name for node in model.live_nodes()}
    head, colon, tail = named_fact.rpartition(":")
    named = bool(colon) and (head in names or "," not in head)
    fact = parse_inference_fact((tail if named else named_fact) + equals + values, model.symbols)
    return (head if named else None), fact


def _set_input(model: InferenceModel, outlet: OutletId, fact: InferenceFact, text: str) -> None:
    """Give an input a fact; the element type stays when the fact has none."""
    if fact.datum_type is None:
        fact = replace(fact, datum_type=model.outlet_fact(outlet).datum_type)
    model.set_outlet_fact(outlet, fact)


def _input_named(model: InferenceModel, name: str) -> OutletId:
    for outlet in model.inputs:
        if model.outlet_name(outlet) == name:
            return outlet
    raise InputError(f"no input {name!r}; there are: {', '.join(map(model.outlet_name, model.inputs)) or 'none'}")


def _input_at(model: InferenceModel, index: int, text: str) -> OutletId:
    if index >= len(model.inputs):
        raise InputError(f"--input {text!r} is number {index + 1}, the model has {len(model.inputs)} inputs")
    return model.inputs[index]


def _facts_from_bundle(model: InferenceModel, arrays: Mapping[str, Array], path: str) -> None:
    names = [model.outlet_name(outlet) for outlet in model.inputs]
    if not arrays.keys() & set(names):
        raise InputError(
            f"there is no input in it: it has {', '.join(arrays) or 'nothing'}",
            where=path,
            hint=f"inputs: {', '.join(names)}",
        )
    for outlet in model.inputs:
        array = arrays.get(model.outlet_name(outlet))
        if array is not None:
            model.set_outlet_fact(outlet, InferenceFact(DatumType.from_numpy(array.dtype), array.shape))


def _constantize(model: InferenceModel, name: str, arrays: Mapping[str, Array]) -> None:
    """Make an input a constant: of the value that it has, or that of the array of its name."""
    outlet = _input_named(model, name)
    if name in arrays and model.outlet_fact(outlet).value is None:
        value = Constant(arrays[name])
        model.set_outlet_fact(outlet, InferenceFact(value.datum_type, value.array.shape, value))
    if model.outlet_fact(outlet).value is None:
        hint = "give it with --input, as NAME:2,i64=3,4 or NAME=FILE.npy, or with --input-facts-from-bundle"
        raise InputError(f"input {name!r} has no known value", hint=hint)
