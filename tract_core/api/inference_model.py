"""The model of a file before its types and shapes are known, as users hold it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tract_core.api.handle import Handle
from tract_core.api.interface import Interface, input_outlet, output_outlet
from tract_core.api.model import Model
from tract_core.errors import InputError, ModelWarning
from tract_core.plugins.callers import level_of_caller

if TYPE_CHECKING:
    from tract_core.analysis import inference as core
    from tract_core.api.fact import Fact, InferenceFact
    from tract_core.model.fact import InferenceFact as CoreFact
    from tract_core.model.graph import Graph
    from tract_core.model.typed import TypedModel
    from tract_core.prepared.signature import ModelSignature


class InferenceModel(Handle["core.InferenceModel"], Interface):
    """A model as its file has it: its own operators, and whatever is known of types and shapes.

    `into_model` consumes it.
    """

    __slots__ = ()

    _advice = "load it again; the Model that into_model returned has taken its place"
    _elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("into_runnable", "run", "transform", "declutter", "clone", "save", "typed"),
        "model.into_model() finds out all types and shapes; the Model that it gives has the rest",
    )

    @property
    def graph(self) -> Graph[Any, Any]:
        """The graph, as the core has it. Raises ConsumedError when the model was handed over."""
        return self._shown

    @property
    def _interface(self) -> Graph[Any, Any]:
        """What knows the inputs and outputs: the graph."""
        return self._held

    def input_fact(self, input_id: int | str) -> InferenceFact:
        """What is known of an input. Raises InputError for an input that is not there."""
        from tract_core.api.fact import InferenceFact

        return InferenceFact(self._held.outlet_fact(input_outlet(self._held, input_id)))

    def output_fact(self, output_id: int | str) -> InferenceFact:
        """What is known of an output. Raises InputError for an output that is not there."""
        from tract_core.api.fact import InferenceFact

        return InferenceFact(self._held.outlet_fact(output_outlet(self._held, output_id)))

    def set_input_fact(self, input_id: int | str, fact: InferenceFact | Fact | str | None) -> None:
        """Say what an input is, in place of what was known: a fact, its text form, or ``None`` for nothing known.

        With a value, as in ``"i64=16000"`` or ``"2,f32=0.5,1"``, it is a constant of the model, which then has an input
        less. Raises InputError for an input that is not there, FactError or DimError for a text that cannot be read.
        """

        def set_fact(model: core.InferenceModel) -> core.InferenceModel:
            model.set_outlet_fact(input_outlet(model, input_id), _fact_like(fact, model))
            return model

        step = self._next(set_fact, lambda _: None, "set_input_fact", input_id, fact)
        self._content, self._recipe, _ = step

    def set_output_fact(self, output_id: int | str, fact: InferenceFact | Fact | str | None) -> None:
        """Say what an output is, as `set_input_fact` does for an input."""
        outlet = output_outlet(self._shown, output_id)
        self._held.set_outlet_fact(outlet, _fact_like(fact, self._held))

    def set_input_names(self, names: Sequence[str]) -> None:
        """Make these tensors the inputs, in order, whatever gave them their values before: a node, or a constant.

        Raises GraphError for a name that is not there, InputError when an output needs an input that is not among
        them.
        """
        from tract_core.analysis.cut import set_inputs

        set_inputs(self._shown, _names(names))

    def set_output_names(self, names: Sequence[str]) -> None:
        """Make these tensors the outputs, in order. Raises GraphError for a name that is not there."""
        self._shown.set_outputs([self._held.outlet_named(name) for name in _names(names)])

    def fact(self, spec: str) -> InferenceFact:
        """A fact from its text form, as ``B,3,_,f32``; its symbols become symbols of the model."""
        if not isinstance(spec, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"a fact is given as a text, as 'B,3,_,f32'; got {type(spec).__name__}")
        from tract_core.api.fact import InferenceFact
        from tract_core.model.fact_text import parse_inference_fact

        return InferenceFact(parse_inference_fact(spec, self._shown.symbols))

    def analyse(self) -> None:
        """Find out all types and shapes that can be found out.

        Raises ModelError when what is known contradicts itself.
        """
        self._held.analyse()

    def into_analysed(self) -> InferenceModel:
        """`analyse`, and the model itself."""
        self.analyse()
        return self

    def into_model(self) -> Model:
        """The typed model, in normal form. Consumes this one, unless it raises.

        Raises ModelError, listing every node that cannot be typed and why.
        """
        told: list[str] = []
        """What is warned of here, although the model is only made later: then nobody is warned again."""

        def into_typed(model: core.InferenceModel) -> TypedModel:
            model.has_warned = model.has_warned or bool(told)
            return model.into_typed().declutter()

        typed, recipe, known = self._next(into_typed, self._said_of, "into_model")
        self._give("InferenceModel.into_model")
        signature, warning = known or (None, "")
        if warning:
            told.append(warning)
            warnings.warn(warning, ModelWarning, stacklevel=level_of_caller())
        return Model(typed, recipe, signature)

    def _said_of(self, typed: TypedModel) -> tuple[ModelSignature, str]:
        """What is said of the typed model before it is there, and what there is to warn of."""
        from tract_core.prepared.signature import ModelSignature

        return ModelSignature.of(typed), self._held.warning

    def __str__(self) -> str:
        from tract_core.api.display import describe_model

        return "InferenceModel (consumed)" if self.is_consumed else describe_model("InferenceModel", self._held)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tract_core.api.display import html_of

        return html_of("InferenceModel", None if self.is_consumed else self._held)

    def __rich_repr__(self) -> Any:
        from tract_core.api.display import rich_of

        yield from rich_of(None if self.is_consumed else self._held)

    def __reduce__(self) -> tuple[object, ...]:
        raise InputError(
            "an InferenceModel cannot be copied or pickled: its nodes belong to the file",
            hint="load the file again; the Model of into_model() can be copied and pickled",
        )


def _names(names: Any) -> list[str]:
    if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in cast("Sequence[Any]", names)):
        return list(cast("Sequence[str]", names))
    raise InputError(f"names are given as a list of texts, got {names!r:.80}")


def _fact_like(fact: Any, model: core.InferenceModel) -> CoreFact:
    """What is known of a tensor of the model, from whatever a caller gave for it."""
    if isinstance(fact, str):
        from tract_core.model.fact_text import parse_inference_fact

        return parse_inference_fact(fact, model.symbols)
    from tract_core.api.fact import fact_like

    found = fact_like(fact)
    if found is None:
        raise InputError(
            f"a fact is an InferenceFact, a Fact, a text or None; got {type(fact).__name__}",
            hint="write it as in 'B,3,224,224,f32'",
        )
    return found
