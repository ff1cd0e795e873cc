"""The transform ``pulse``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import ClassVar, Final, NamedTuple

from tract_core.analysis.findings import Sheet
from tract_core.dims import Dim, TDim, is_symbolic, parse_dim
from tract_core.errors import DimError, TransformError
from tract_core.frozen import frozen
from tract_core.limits import MAX_SIZE
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.runtime.streams import Streamed
from tract_pulse.pulsing.lengths import in_full
from tract_pulse.pulsing.report import sheets, streamed
from tract_pulse.pulsing.translate import Translation, check_all_streams, properties, translated
from tract_pulse.stream import PastLimit


@frozen
class Pulse:
    """Turn a model over a whole signal into one that takes it piece by piece."""

    name: ClassVar[str] = "pulse"
    pulse: int | str | TDim = field(
        metadata={"doc": "how much of the signal comes at a time, as '8'; 'T=8' names the symbol as well"}
    )
    symbol: str | None = field(
        default=None, metadata={"doc": "the symbol that is the length of the signal, S if not given"}
    )
    past: int | str | None = field(
        default=None,
        metadata={"doc": "how far back attention looks that has no limit of its own: positions, or 'all'"},
    )

    def apply(self, model: TypedModel) -> TypedModel:
        """The model over pulses. Raises TransformError, with every node that cannot be streamed."""
        model, found = self._translated(model)
        check_all_streams(found)
        result, symbol = found.model, self._parameters().symbol
        if all(found.wires[outlet].stream is None for outlet in model.outputs):
            raise TransformError(f"pulse: no output depends on the signal along {symbol}")
        result.set_outputs(_outputs(model, found))
        for condition, origin in model.conditions:
            result.conditions.add(condition, origin)
        result.properties = {**model.properties, **dict(properties(found, model, symbol))}
        return result

    def examine(self, model: TypedModel) -> Iterator[Sheet]:
        """What each node adds to the delay, how late the outputs are, and what is kept between pulses."""
        model, found = self._translated(model)
        return sheets(found, model)

    def streams(self, model: TypedModel) -> Mapping[str, Streamed]:
        """The tensors of ``model`` as they come in the model that `apply` gives, by name."""
        model, found = self._translated(model)
        return streamed(found, model)

    def _translated(self, model: TypedModel) -> tuple[TypedModel, Translation]:
        """The model without names of sizes, and what becomes of it."""
        found = self._parameters()
        model = in_full(model, found.symbol)
        return model, translated(model, found.symbol, found.pulse, found.past)

    def _parameters(self) -> _Parameters:
        symbol, text, past = self.symbol, self.pulse, self.past
        if isinstance(text, str) and ",past=" in text:
            text, _, limit = text.rpartition(",past=")
            past = ALL if limit.strip() == ALL else int(limit) if limit.strip().isdecimal() else -1
        if isinstance(text, str) and "=" in text:
            symbol, _, text = (part.strip() for part in text.partition("="))
        try:
            pulse = parse_dim(text) if isinstance(text, str) else text
        except DimError as error:
            problem = f"pulse: the pulse is {text!r}, which is no size: {error.problem}"
            raise TransformError(problem, hint=f"as in '8', or '{symbol or 'S'}=8'") from None
        if not isinstance(pulse, (int, TDim)) or isinstance(pulse, bool):  # pyright: ignore[reportUnnecessaryIsInstance]: may come from JSON
            raise TransformError(f"pulse: the pulse is {pulse!r}, wanted a number of positions or an expression")
        if not is_symbolic(pulse) and int(pulse) < 1:
            raise TransformError(f"pulse: a pulse of {pulse} positions; wanted at least one")
        if past not in (None, ALL) and (
            not isinstance(past, int) or isinstance(past, bool) or not 0 <= past <= MAX_SIZE
        ):
            given = self.pulse if self.past is None else self.past
            raise TransformError(f"pulse: past is {given!r}, wanted a number of positions, 0 or more, or 'all'")
        return _Parameters(pulse, symbol or "S", ALL if past == ALL else past)


ALL: Final = "all"


class _Parameters(NamedTuple):
    """What was asked for, read."""

    pulse: Dim
    symbol: str
    past: PastLimit | None


def _outputs(model: TypedModel, found: Translation) -> list[OutletId]:
    """The outputs over pulses, by their names. Those that differ in their delays alone are one tensor by two names."""
    result, outputs = found.model, list[OutletId]()
    for outlet in model.outputs:
        there, name = found.wires[outlet].outlet, model.outlet_name(outlet)
        if there in outputs or (there in result.inputs and outlet not in model.inputs):
            (there,) = result.wire_node(result.unique_name(name), Identity(), [there])
        result.set_label(there, name)
        outputs.append(there)
    return outputs
