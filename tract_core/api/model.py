"""The typed model, as users hold it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tract_core.api.display import describe_model, html_of, rich_of
from tract_core.api.fact import Fact
from tract_core.api.handle import Handle
from tract_core.api.interface import TypedInterface
from tract_core.errors import InputError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel

if TYPE_CHECKING:
    from tract_core.api.runnable import Runnable
    from tract_core.api.runtime import Runtime
    from tract_core.api.specs import TransformSpec
    from tract_core.transforms.transform import Transform


class Model(Handle[TypedModel], TypedInterface):
    """A model in which every element type and shape is known, in normal form.

    `Runtime.prepare` and `into_runnable` consume it.
    """

    __slots__ = ()

    _advice = "load it again, or make a clone() before it is handed over"
    _elsewhere: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("run", "spawn_state", "stream", "explain"), "model.into_runnable() makes a model ready, and that runs"
    )

    @staticmethod
    def from_typed(model: TypedModel) -> Model:
        """A model around a graph of the core, taken as it is; `declutter` brings it to its normal form."""
        if not isinstance(model, TypedModel):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"Model.from_typed wants a TypedModel, got {type(model).__name__}")
        return Model(model)

    @property
    def typed(self) -> TypedModel:
        """The graph, as the core has it. Raises ConsumedError when the model was handed over."""
        return self._held

    def into_typed(self, *, by: str = "Model.into_typed") -> TypedModel:
        """The graph, as the core has it. Consumes the model; ``by`` is who has it then, for the message."""
        return self._hand_over(by)

    def declutter(self) -> Model:
        """Bring the model to its normal form; returns it. Models that were loaded or transformed already are."""
        self.typed.declutter()
        return self

    def clone(self) -> Model:
        """A model of its own with the same content; constants are shared, not copied."""
        return Model(self.typed.clone())

    def transform(self, transform: str | TransformSpec | Transform) -> None:
        """Apply a transform, then bring the model to its normal form.

        ``transform``: a name (``"f32_to_f16"``), JSON with its parameters (``'{"name": "set_symbols", "values": {"B":
        1}}'``), a spec such as `SetSymbols`, or a transform itself. Raises TransformError for one that is unknown or
        does not apply, PluginError for one whose plugin is not installed; the model stays as it was.
        """
        from tract_core.transforms.apply import apply_transform

        self._content = apply_transform(self.typed, transform)

    def parse_fact(self, spec: str) -> Fact:
        """A complete fact from its text form, ``1,3,S,f32``; its symbols become symbols of the model.

        Raises FactError or DimError when a part is missing or unreadable.
        """
        _require_text(spec)
        return Fact(parse_typed_fact(spec, self.typed.symbols))

    def save(self, path: str | os.PathLike[str], *, format_name: str | None = None, **options: Any) -> None:
        """Write the model as a format that is installed: by the ending of ``path``, unless ``format_name`` says it.

        ``options``: keywords of the format's writer. What was there before stays when anything fails. Raises InputError
        for a path or an option that is none, Unsupported for a model that the format cannot say.
        """
        from tract_core.api.formats import checked_path, format_to_write, write_as  # for who saves models

        model, target = self.typed, checked_path(path)
        write_as(format_to_write(target, model.registry.formats(), format_name), model, target, **options)

    def into_runnable(self, runtime: str | Runtime = "default", **options: Any) -> Runnable:
        """The model ready to run on a runtime: ``into_runnable("cpu", threads=2)``. Consumes the model.

        ``runtime``, ``options``: as for `runtime_for_name`; or a `Runtime`, without options. Raises as that does, and
        as `Runtime.prepare`.
        """
        from tract_core.api.runtime import runtime_like

        return runtime_like(runtime, options, self.typed.registry).prepare(self)

    def __str__(self) -> str:
        return "Model (consumed)" if self.is_consumed else describe_model("Model", self.typed)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_of("Model", None if self.is_consumed else self.typed)

    def __rich_repr__(self) -> Any:
        yield from rich_of(None if self.is_consumed else self.typed)

    def __copy__(self) -> Model:
        return self.clone()

    def __deepcopy__(self, memo: object) -> Model:
        return self.clone()

    def __reduce__(self) -> tuple[object, ...]:
        return Model, (self.typed,)


def _require_text(spec: Any) -> None:
    if not isinstance(spec, str):
        raise InputError(f"a fact is given as a text, as '1,3,S,f32'; got {type(spec).__name__}")
