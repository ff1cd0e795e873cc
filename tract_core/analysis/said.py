"""What was said of a tensor that nodes compute, against what its operators give.

The operators know best. What a file says (a claim) fills in the sizes that they leave open; where it disagrees with
them, all that it says of that tensor is set aside. What whoever uses the model says (a contract) holds, and is an error
where it cannot. Whatever is relied on beyond what the operators give is checked in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tract_core.data.containers import compatible_types
from tract_core.dims import Dim, bind, is_symbolic, symbols_of
from tract_core.errors import ContradictoryFacts, DimError
from tract_core.frozen import frozen
from tract_core.model.fact import InferenceFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.check import CheckShape

_CLAIM_HINT: Final = "if the file is wrong, load it with {option}=True"
_CONTRACT_HINT: Final = "correct the fact that was given for this tensor, or give none"

Sizes = tuple[Dim | None, ...]
"""For each axis a size to rely on, or ``None``."""


@frozen
class Said:
    """What was said of a tensor. ``is_claim``: by the file only. ``is_output``: of an output of the model.

    ``name``: what the file calls the tensor.
    """

    name: str
    fact: InferenceFact
    is_claim: bool
    is_output: bool

    def __str__(self) -> str:
        return f"{'the file says' if self.is_claim else 'the fact that was given is'} {self.fact}"

    @property
    def rank(self) -> int | None:
        """The number of axes, where that was said."""
        return None if self.fact.shape is None else len(self.fact.shape)

    def hint(self, *, types: bool = False) -> str:
        """What to do where it is wrong; ``types``: about the element type."""
        if not self.is_claim:
            return _CONTRACT_HINT
        about = f"ignore_output_{'types' if types else 'shapes'}"
        return _CLAIM_HINT.format(option=about if self.is_output else "ignore_value_info")

    def beyond(self, model: TypedModel, found: TypedFact) -> Sizes:
        """The sizes to rely on beyond what is ``found``, all ``None`` where there are none.

        Raises ContradictoryFacts, with both sides, where what was said cannot be, and where a claim would overrule a
        size that somebody named.
        """
        kind, shape = self.fact.datum_type, self.fact.shape
        if kind is not None and not compatible_types(kind, found.datum_type):
            raise self._contradiction(found, types=True)
        if self.rank not in (None, found.rank):
            raise self._contradiction(found)
        sizes: list[Dim | None] = []
        for own, wanted in zip(found.shape, shape or (), strict=False):
            same = None if wanted is None else model.known.same(own, wanted)
            if same is False or (same is None and self._overrules(model, own, wanted)):
                raise self._contradiction(found)
            sizes.append(None if same or not self._counts(model, wanted) else wanted)
        return tuple(sizes)

    def _overrules(self, model: TypedModel, own: Dim, wanted: Dim | None) -> bool:
        """Whether a number cannot be a size, or stands against a name and nobody vouches for it."""
        if wanted is None or is_symbolic(wanted):
            return False
        try:
            bind([own], [int(wanted)], {})
        except DimError:
            return True
        return self.is_claim and not model.symbols.is_unnamed(own)

    def _counts(self, model: TypedModel, wanted: Dim | None) -> bool:
        """Whether to rely on a size: names mean little in files, and nothing anywhere until an input binds them."""
        if wanted is None or not is_symbolic(wanted):
            return wanted is not None
        return not self.is_claim and symbols_of(wanted) <= model.given_symbols()

    def _contradiction(self, found: TypedFact, *, types: bool = False) -> ContradictoryFacts:
        return ContradictoryFacts(f"{self}, its operators give {found}", hint=self.hint(types=types))


def settled(found: TypedFact, sizes: Sizes, symbols: Iterable[str]) -> dict[str, int]:
    """The values of these symbols that follow from sizes to rely on."""
    values: dict[str, int] = {}
    for own, wanted in zip(found.shape, sizes, strict=False):
        if wanted is not None and not is_symbolic(wanted) and symbols_of(own) <= set(symbols):
            values.update(bind([own], [int(wanted)], {}))
    return values


def wire_check(model: TypedModel, outlet: OutletId, said: Said, sizes: Sizes) -> OutletId:
    """The tensor with these sizes, which are checked in every run. It takes over the tensor's name."""
    if outlet.slot > 0:
        model.outlet_labels.pop(outlet, None)
    elif model.nodes[outlet.node].name == said.name:
        model.rename(outlet.node, f"{said.name}.unchecked")
    (checked,) = model.wire_node(said.name, CheckShape(sizes, str(said), said.hint()), [outlet])
    return checked


def in_one(found: Sequence[ContradictoryFacts]) -> str:
    """Claims that were set aside, as one line for a warning."""
    shown = "; ".join(f"{error.where}: {error.problem}" for error in found[:SHOWN])
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    tensors = "1 tensor" if len(found) == 1 else f"{len(found)} tensors"
    return (
        f"what the file says of {tensors} is set aside, as the operators know better: {shown}{more} "
        "('tract MODEL doctor' lists all, strict_facts=True makes an error of them)"
    )


SHOWN: Final = 3
"""How many claims a warning names."""
