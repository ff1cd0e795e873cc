"""A node of an ONNX file in an `InferenceModel`."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isfunction
from types import NoneType
from typing import cast

from tract_core.analysis.inference import InferenceOp
from tract_core.errors import LimitExceeded, ModelError, TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_one
from tract_onnx.node import OnnxNode
from tract_onnx.registry import DEFAULT_DOMAIN, OnnxFn
from tract_onnx.wiring import Wiring


@frozen
class OnnxOp(InferenceOp):
    """A node, and the function that wires it.

    ``slots``: for each input of the ONNX node, which input of this one it is; ``None`` for an optional one left out.
    ``outer``: the names of the values that the graphs inside the node capture; they are the inputs that follow.
    """

    node: OnnxNode
    function: OnnxFn
    slots: tuple[int | None, ...]
    outer: tuple[str, ...] = ()

    __eq__ = object.__eq__  # a node is itself alone
    __hash__ = object.__hash__

    @property
    def name(self) -> str:
        """The operator's name in the file, with its domain where that is not the default one."""
        return _display(self.node)

    def name_in_file(self) -> str:
        """The name of the ONNX node, which may have none."""
        return self.node.name

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """The core operators. The node that yields an output of the ONNX node gets that output's name.

        Raises TractError; whatever else goes wrong in a row of the table becomes a ModelError.
        """
        captured = dict(zip(self.outer, inputs[len(inputs) - len(self.outer) :], strict=True))
        given = [None if slot is None else inputs[slot] for slot in self.slots]
        before = len(model.nodes)
        try:
            result = self.function(self.node, Wiring(model, name, given, captured))
        except TractError:
            raise
        except MemoryError:
            raise LimitExceeded("there is not enough memory to wire it") from None
        except Exception as error:
            problem = f"it cannot be wired: {type(error).__name__}: {error}"
            hint = f"{_defect(model, self.function)}; --debug shows the traceback"
            raise ModelError(problem, hint=hint) from error
        return _named(model, self.node, self._outlets(model, result), before)

    def _outlets(self, model: TypedModel, result: object) -> Sequence[OutletId | None]:
        """What the row of the table returned. Raises ModelError, naming its distribution, when it is something else."""
        if isinstance(result, OutletId):
            if _is_in(model, result):
                return [result]
            found = "an outlet of another model"
        elif not isinstance(result, (tuple, list)):
            found = "None, as if it had no return" if result is None else f"a {type(result).__name__}"
        else:
            items = cast("Sequence[object]", result)
            outlets = [one for one in items if one is None or (isinstance(one, OutletId) and _is_in(model, one))]
            if len(outlets) == len(items):
                return outlets
            other = next((one for one in items if not isinstance(one, (OutletId, NoneType))), None)
            what = "an outlet of another model" if other is None else f"a {type(other).__name__}"
            found = f"a {type(items).__name__} with {what}"
        problem = f"the function that wires it returned {found}, wanted an outlet, or one per output"
        raise ModelError(problem, hint=_defect(model, self.function))


def _is_in(model: TypedModel, outlet: OutletId) -> bool:
    return 0 <= outlet.node < len(model.nodes) and outlet.slot < len(model.nodes[outlet.node].outputs)


def _defect(model: TypedModel, function: OnnxFn) -> str:
    """What to do about a row of the table that is wrong."""
    if not isfunction(function):
        return "this is a defect of the distribution that brought it"
    home = model.registry.home_of(function)
    return f"this is a defect of {home}: {function.__name__} in {function.__module__}"


def _named(model: TypedModel, node: OnnxNode, outlets: Sequence[OutletId | None], before: int) -> list[OutletId]:
    """One outlet per output of ``node``, under the names that the file gives them; ``before``: the first new node."""
    named: list[OutletId] = []
    names = frozenset(node.output_names)
    for slot, wanted in enumerate(node.output_names):
        outlet = outlets[slot] if slot < len(outlets) else None
        if not wanted:
            named.append(OutletId(before - 1) if outlet is None else outlet)
        elif outlet is None:
            raise Unsupported(f"output {slot}, {wanted!r}, is read, and it is not computed here")
        else:
            named.append(_name(model, names, outlet, wanted, before))
    return named


def _name(model: TypedModel, names: frozenset[str], outlet: OutletId, wanted: str, before: int) -> OutletId:
    if outlet.slot > 0:
        model.set_label(outlet, wanted)
        return outlet
    current = model.nodes[outlet.node].name
    if outlet.node < before or (current != wanted and current in names):
        # The tensor has a name already: it passed through unchanged, or is two outputs of this node.
        return wire_one(model, wanted, Identity(), outlet)
    if current != wanted:
        model.rename(outlet.node, wanted)
    return outlet


def _display(node: OnnxNode) -> str:
    return node.op_type if node.domain == DEFAULT_DOMAIN else f"{node.domain}.{node.op_type}"
