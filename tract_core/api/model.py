"""The typed model, as users hold it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tract_core.api.handle import Handle
from tract_core.api.interface import TypedInterface
from tract_core.errors import InputError
from tract_core.garbage import uncollected
from tract_core.later import Later
from tract_core.prepared.signature import ModelSignature

if TYPE_CHECKING:
    from tract_core.api.fact import Fact
    from tract_core.api.runnable import Runnable
    from tract_core.api.runtime import Runtime
    from tract_core.api.specs import TransformSpec
    from tract_core.model.typed import TypedModel
    from tract_core.prepared.recipe import Recipe
    from tract_core.transforms.transform import Transform


class Model(Handle["TypedModel"], TypedInterface):
    """A model in which every element type and shape is known, in normal form.

    `Runtime.prepare` and `into_runnable` consume it.
    """

    __slots__ = ("_signature",)

    _advice = "load it again, or make a clone() before it is handed over"
    _elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("run", "spawn_state", "stream", "explain"), "model.into_runnable() makes a model ready, and that runs"
    )

    def __init__(
        self,
        content: TypedModel | Later[TypedModel],
        recipe: Recipe | None = None,
        signature: ModelSignature | None = None,
    ) -> None:
        """For this package; users call `from_typed`. ``signature``: of what is made when somebody looks at it."""
        super().__init__(content, recipe)
        self._signature = signature

    @staticmethod
    def from_typed(model: TypedModel) -> Model:
        """A model around a graph of the core, taken as it is; `declutter` brings it to its normal form."""
        from tract_core.model.typed import TypedModel

        if not isinstance(model, TypedModel):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"Model.from_typed wants a TypedModel, got {type(model).__name__}")
        return Model(model)

    @property
    def typed(self) -> TypedModel:
        """The graph, as the core has it. Raises ConsumedError when the model was handed over."""
        self._signature = None
        return self._shown

    @property
    def _interface(self) -> TypedModel | ModelSignature:
        """What knows the inputs and outputs: the graph, or what is known of it before it is there."""
        there = self._there
        return self._signature if isinstance(there, Later) and self._signature is not None else self._held

    def into_typed(self, *, by: str = "Model.into_typed") -> TypedModel:
        """The graph, as the core has it. Consumes the model; ``by`` is who has it then, for the message."""
        return self._hand_over(by)

    def declutter(self) -> Model:
        """Bring the model to its normal form; returns it. Models that were loaded or transformed already are."""
        if not isinstance(self._there, Later):  # what is made later is in normal form
            self.typed.declutter()
        return self

    def clone(self) -> Model:
        """A model of its own with the same content; constants are shared, not copied."""
        there = self._there
        if not isinstance(there, Later):
            return Model(there.clone(), self._recipe)

        def cloned() -> TypedModel:
            return there.value.clone()

        return Model(Later(cloned), self._recipe, self._signature)

    def transform(self, transform: str | TransformSpec | Transform) -> None:
        """Apply a transform, then bring the model to its normal form.

        ``transform``: a name (``"f32_to_f16"``), JSON with its parameters (``'{"name": "set_symbols", "values": {"B":
        1}}'``), a spec such as `SetSymbols`, or a transform itself. Raises TransformError for one that is unknown or
        does not apply, PluginError for one whose plugin is not installed; the model stays as it was.
        """
        from tract_core.transforms.apply import apply_transform

        step = self._next(
            lambda model: apply_transform(model, transform), ModelSignature.of, "transform", _told(transform)
        )
        self._content, self._recipe, self._signature = step

    def parse_fact(self, spec: str) -> Fact:
        """A complete fact from its text form, ``1,3,S,f32``; its symbols become symbols of the model.

        Raises FactError or DimError when a part is missing or unreadable.
        """
        _require_text(spec)
        from tract_core.api.fact import Fact
        from tract_core.model.fact_text import parse_typed_fact

        return Fact(parse_typed_fact(spec, self.typed.symbols))

    def save(self, path: str | os.PathLike[str], *, format_name: str | None = None, **options: Any) -> None:
        """Write the model as a format that is installed: by the ending of ``path``, unless ``format_name`` says it.

        ``options``: keywords of the format's writer. What was there before stays when anything fails. Raises InputError
        for a path or an option that is none, Unsupported for a model that the format cannot say.
        """
        from tract_core.api.formats import format_to_write, write_as
        from tract_core.api.given import checked_path

        model, target = self._held, checked_path(path)
        write_as(format_to_write(target, model.registry.formats(), format_name), model, target, **options)

    def into_runnable(self, runtime: str | Runtime = "default", **options: Any) -> Runnable:
        """The model ready to run on a runtime: ``into_runnable("cpu", threads=2)``. Consumes the model.

        ``runtime``, ``options``: as for `runtime_for_name`; or a `Runtime`, without options. Raises as that does, and
        as `Runtime.prepare`.
        """
        with uncollected():
            from tract_core.api.runtime import runtime_like

            there = self._there
            registry = None if isinstance(there, Later) else there.registry
            return runtime_like(runtime, options, registry).prepare(self)

    def __str__(self) -> str:
        from tract_core.api.display import describe_model

        return "Model (consumed)" if self.is_consumed else describe_model("Model", self._held)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tract_core.api.display import html_of

        return html_of("Model", None if self.is_consumed else self._held)

    def __rich_repr__(self) -> Any:
        from tract_core.api.display import rich_of

        yield from rich_of(None if self.is_consumed else self._held)

    def __copy__(self) -> Model:
        return self.clone()

    def __deepcopy__(self, memo: object) -> Model:
        return self.clone()

    def __reduce__(self) -> tuple[object, ...]:
        return Model, (self._held,)


def _told(transform: Any) -> object:
    """A transform as it was asked for, where that is a text or can be written as one."""
    return (
        transform if isinstance(transform, str) else transform.to_json() if hasattr(transform, "to_json") else transform
    )


def _require_text(spec: Any) -> None:
    if not isinstance(spec, str):
        raise InputError(f"a fact is given as a text, as '1,3,S,f32'; got {type(spec).__name__}")
