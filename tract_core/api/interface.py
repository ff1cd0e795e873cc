"""What everything with inputs and outputs answers: how many there are, their names, their facts, and properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from tract_core.api.tensor import Tensor
from tract_core.errors import InputError

if TYPE_CHECKING:
    from tract_core.api.fact import Fact
    from tract_core.model.graph import Graph, OutletId
    from tract_core.model.typed import TypedModel
    from tract_core.prepared.signature import ModelSignature


class NotHereError(InputError, AttributeError):
    """Something was asked of an object that another one does."""


class Interface:
    """Inputs and outputs of a graph. Each is known by its position, counted from 0, and by its name."""

    __slots__ = ()

    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """What others do that one might look for here, and how to get to them."""

    if not TYPE_CHECKING:  # checkers find out themselves what is not there

        def __getattr__(self, name: str) -> NoReturn:
            hint = self._elsewhere.get(name)
            error = NotHereError(f"{type(self).__name__!r} object has no attribute {name!r}", hint=hint)
            error.name, error.obj = name, self  # by which Python tells what was meant
            raise error

    @property
    def graph(self) -> Graph[Any, Any]:
        """The graph, as the core has it."""
        raise AttributeError("graph")

    @property
    def _interface(self) -> Graph[Any, Any] | ModelSignature:
        """What knows the inputs and outputs: the graph, or what is known of it before it is there."""
        raise AttributeError("_interface")

    def input_count(self) -> int:
        """Number of inputs."""
        return len(self._interface.inputs)

    def output_count(self) -> int:
        """Number of outputs."""
        return len(self._interface.outputs)

    def input_name(self, input_id: int | str) -> str:
        """The name of an input. Raises InputError for an input that is not there."""
        return self._interface.outlet_name(input_outlet(self._interface, input_id))

    def output_name(self, output_id: int | str) -> str:
        """The name of an output. Raises InputError for an output that is not there."""
        return self._interface.outlet_name(output_outlet(self._interface, output_id))

    def input_names(self) -> list[str]:
        """The names of all inputs, in order."""
        return [self._interface.outlet_name(outlet) for outlet in self._interface.inputs]

    def output_names(self) -> list[str]:
        """The names of all outputs, in order."""
        return [self._interface.outlet_name(outlet) for outlet in self._interface.outputs]


class TypedInterface(Interface):
    """Inputs and outputs with complete facts, and the properties that the model carries."""

    __slots__ = ()

    @property
    def typed(self) -> TypedModel:
        """The model, as the core has it. To be read, not changed."""
        raise AttributeError("typed")

    @property
    def graph(self) -> Graph[Any, Any]:
        """The same as `typed`."""
        return self.typed

    @property
    def _interface(self) -> TypedModel | ModelSignature:
        """What knows the inputs and outputs, with complete facts."""
        raise AttributeError("_interface")

    def input_fact(self, input_id: int | str) -> Fact:
        """The fact of an input. Raises InputError for an input that is not there."""
        from tract_core.api.fact import Fact

        return Fact(self._interface.outlet_fact(input_outlet(self._interface, input_id)))

    def output_fact(self, output_id: int | str) -> Fact:
        """The fact of an output. Raises InputError for an output that is not there."""
        from tract_core.api.fact import Fact

        return Fact(self._interface.outlet_fact(output_outlet(self._interface, output_id)))

    def input_facts(self) -> list[Fact]:
        """The facts of all inputs, in order."""
        from tract_core.api.fact import Fact

        return [Fact(self._interface.outlet_fact(outlet)) for outlet in self._interface.inputs]

    def output_facts(self) -> list[Fact]:
        """The facts of all outputs, in order."""
        from tract_core.api.fact import Fact

        return [Fact(self._interface.outlet_fact(outlet)) for outlet in self._interface.outputs]

    def property_keys(self) -> list[str]:
        """The names of the properties, sorted."""
        return sorted(self._interface.properties)

    def property(self, name: str) -> Tensor:
        """A property. Raises InputError, with the names there are, for one that is not there."""
        found = self._interface.properties.get(str(name))
        if found is None:
            known = ", ".join(self.property_keys()) or "none"
            raise InputError(f"Property not found: no property for name {name}; properties: {known}")
        return Tensor.from_numpy(found)


def interface_of(shown: TypedInterface) -> TypedModel | ModelSignature:
    """What knows the inputs and outputs of something: the model, or what is known of it before it is there."""
    return shown._interface  # pyright: ignore[reportPrivateUsage]: what users hold shows no more than they need


def input_outlet(graph: Graph[Any, Any] | ModelSignature, input_id: int | str) -> OutletId:
    """The tensor that is an input. Raises InputError for an input that is not there."""
    return _pick(graph, graph.inputs, input_id, "input")


def output_outlet(graph: Graph[Any, Any] | ModelSignature, output_id: int | str) -> OutletId:
    """The tensor that is an output. Raises InputError for an output that is not there."""
    return _pick(graph, graph.outputs, output_id, "output")


def _pick(graph: Graph[Any, Any] | ModelSignature, outlets: Sequence[OutletId], wanted: Any, what: str) -> OutletId:
    names = [graph.outlet_name(outlet) for outlet in outlets]
    if isinstance(wanted, str):
        if wanted in names:
            return outlets[names.index(wanted)]
    else:
        try:
            if 0 <= index(wanted) < len(outlets):
                return outlets[index(wanted)]
        except TypeError:
            pass
    from difflib import get_close_matches

    near = get_close_matches(wanted, names, 1) if isinstance(wanted, str) else []
    listed = ", ".join(f"{number}: {name}" for number, name in enumerate(names)) or "none"
    raise InputError(
        f"there is no {what} {wanted!r}; {what}s go by a number from 0 or by name: {listed}",
        hint=f"did you mean {near[0]!r}?" if near else None,
    )
