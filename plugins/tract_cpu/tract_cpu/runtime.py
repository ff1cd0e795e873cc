"""The runtime ``cpu``: what can be chosen, and how a model is made ready."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import inf
from typing import TYPE_CHECKING, ClassVar, Final

from tract_llvm.isa import ISAS, chosen

from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.later import Later, already
from tract_cpu.caches import caches
from tract_cpu.native.pool import threads_here
from tract_cpu.plan import CpuPlan
from tract_cpu.target import Rounding, Target

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_cpu.compile import Planned
    from tract_cpu.ready import Ready


MUCH: Final = 1 << 24
"""Bytes of constants: for less, nodes are kept in any case."""


@frozen
class CpuRuntime:
    """Compiles models for the processor of this machine."""

    name: ClassVar[str] = "cpu"
    threads: int = field(
        default=0,
        metadata={"doc": "threads that a run may use; 0 for TRACT_THREADS, or one for each core"},
    )
    isa: str = field(
        default="", metadata={"doc": f"the instruction set ({', '.join(one.name for one in ISAS)}); empty for the best"}
    )
    winograd: bool = field(
        default=True,
        metadata={"doc": "whether convolutions may be computed by Winograd's method, which rounds otherwise"},
    )
    bytes: bool = field(
        default=False,
        metadata={"doc": "whether what is multiplied with weights in blocks of 4 bits is rounded to 8 bits before"},
    )

    def __post_init__(self) -> None:
        if self.threads < 0:
            raise ValueError(f"threads is {self.threads}, wanted 1 or more, or 0 for as many as there are cores")
        if self.isa and self.isa not in {one.name for one in ISAS}:
            raise ValueError(f"isa is {self.isa!r}, wanted one of {', '.join(one.name for one in ISAS)}, or none")

    def why_unusable(self) -> str | None:
        """``None`` when there are kernels for this processor, else why not."""
        try:
            chosen(self.isa)
        except Unsupported as error:
            return str(error)
        return None

    def prepare(self, model: TypedModel) -> CpuPlan:
        """Compile a model. Raises Unsupported, naming every operator that has neither native code nor NumPy meaning."""
        from tract_core.runtime.plan import refuse_missing

        refuse_missing(model)
        target = self.target()
        return CpuPlan(model, target.isa, target.threads, rounding=target.rounding)

    def target(self) -> Target:
        """What models are compiled for. Raises Unsupported where this processor lacks the instruction set."""
        rounding = Rounding(self.winograd, self.bytes)
        return Target(chosen(self.isa), self.threads or threads_here(), rounding=rounding)

    def told(self) -> str:
        """What plans depend on besides the model: the instruction set, the threads, the sizes of caches."""
        target = self.target()
        return repr((target.isa.name, target.threads, target.rounding, caches()))

    def kept(self, plan: CpuPlan) -> object:
        """What is kept of a plan: what turns need; with all of its nodes where they may look at these.

        Nodes of large models are left out where turns look at them after a refusal alone: weights would be kept twice,
        as the file and as kernels have them. The model is compiled again then.
        """
        ready = plan.ready
        refuses_alone = ready.is_one_call and ready.turn.seconds == inf
        left_out = refuses_alone and sum(one.nbytes for one in plan.details.constants.values()) > MUCH
        return ready, already(plan.details.found) if ready.needs_nodes and not left_out else None

    def restored(self, kept: tuple[Ready, Later[Planned] | None], model: Callable[[], TypedModel]) -> CpuPlan | None:
        """The plan that this was kept of; ``None`` where code that it needs is not kept any more."""
        ready, found = kept
        return CpuPlan.restored(self.target(), ready, found, model)
