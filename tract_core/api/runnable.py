"""A model that is ready to run, as users hold it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from tract_core.api.calls import Calls, named_inputs
from tract_core.api.interface import TypedInterface
from tract_core.api.runtime import Runtime, calling
from tract_core.later import Later, already
from tract_core.runtime.protocol import Plan, Repeating

if TYPE_CHECKING:
    from tract_core.api.profile_text import ProfileText
    from tract_core.api.state import State
    from tract_core.api.tensor import Tensor
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array
    from tract_core.prepared.signature import ModelSignature
    from tract_core.runtime.explain import Explanation


class Runnable(TypedInterface):
    """A model prepared by a runtime. Immutable: many threads may use one, each with a `State` of its own.

    It can be pickled; the receiver prepares the model again, on the runtime of the same name.
    """

    __slots__ = {
        "_calls": "",
        "_model": "",
        "_repeating": "",
        "_signature": "",
        "plan": "What the runtime made of the model: `tract_core.runtime.protocol`.",
        "runtime": "The `Runtime` that prepared the model.",
    }

    def __init__(
        self,
        model: TypedModel | Later[TypedModel],
        plan: Plan,
        runtime: Runtime,
        signature: ModelSignature | None = None,
    ) -> None:
        """For this package: ``plan`` is what ``runtime`` made of ``model``.

        ``signature``: that of a model that is only made when somebody looks at it.
        """
        self._model = model if isinstance(model, Later) else already(model)
        self._signature = signature
        self.plan = plan
        self.runtime = runtime
        self._calls = Calls(signature or self._model.value, plan, runtime)
        self._repeating = plan if isinstance(plan, Repeating) else None

    @property
    def typed(self) -> TypedModel:
        """The model, as the core has it. To be read, not changed."""
        return self._model.value

    @property
    def _interface(self) -> TypedModel | ModelSignature:
        """What knows the inputs and outputs: the model, or what is known of it before it is there."""
        return self._signature or self._model.value

    @overload
    def run(self, inputs: Sequence[Any] | Mapping[str, Any], out: None = None) -> list[Tensor]: ...
    @overload
    def run(
        self, inputs: Sequence[Any] | Mapping[str, Any], out: Sequence[Array] | Mapping[str, Array]
    ) -> list[Array]: ...
    def run(self, inputs: Sequence[Any] | Mapping[str, Any], out: Any = None) -> list[Any]:
        """One turn on a fresh state.

        ``inputs``: one tensor per input, in order, or by name. A tensor is a `Tensor`, a NumPy array, or anything with
        ``__dlpack__`` or ``__array__``; a sequence is a list of them, a map a dictionary, with plain numbers if you
        like. None is written to. Returns one `Tensor` per output, in order; lists and dictionaries as for inputs, and
        ``None`` for an empty optional. Symbols get their values from the shapes.

        ``out``: NumPy arrays of yours that are filled with the outputs and returned, one per output, in order, or by
        name. They have the type and the shape of the output, are contiguous, and share no memory with each other; an
        input that shares memory with one is copied first. What they hold after an error is undefined.

        Raises InputError when the arrays do not fit, RunError when a node fails.
        """
        repeating = self._repeating
        if repeating is not None:
            found = self._calls.repeat(repeating, inputs, out)
            if found is not None:
                return found
        try:
            state = self.plan.spawn()
        except BaseException:
            with calling(self.runtime, "spawn"):
                raise
        return self._calls.run(state, inputs, out)

    def __call__(self, *inputs: Any, **named: Any) -> list[Tensor]:
        """`run`, with the first inputs in order and the others by name: ``runnable(image, threshold=0.5)``."""
        return self.run(named_inputs(inputs, named, self.input_names()))

    def spawn_state(self) -> State:
        """A fresh state, which keeps what stateful operators keep from one call to the next."""
        from tract_core.api.state import State

        with calling(self.runtime, "spawn"):
            return State(self, self._calls, self.plan.spawn())

    def stream(self, source: Iterable[Any], whole: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """What the model makes of a signal that comes in chunks: `State.stream`, on a fresh state."""
        return self.spawn_state().stream(source, whole)

    def explain(self) -> Explanation:
        """Where each node runs, how, and why: an object with a text form and ``to_json()``."""
        with calling(self.runtime, "explain"):
            return self.plan.explain()

    def profile_json(self, inputs: Sequence[Any] | Mapping[str, Any] | None = None) -> ProfileText:
        """What each node costs, and, when inputs are given, how long it takes.

        JSON: ``{"nodes": [{"qualified_id": [[], id], "op_name", "node_name", "cost": {"FMA(F32)": "36*S", ...},
        "secs_per_iter"}, ...], "groups": [...], "profiling_info": {"iterations", "secs_per_iter",
        "median_secs_per_iter"} or null}``. Seconds are means of all turns, but for the median of whole turns. Costs are
        counts of operations, and numbers of elements for ``PARAMS(...)``; seconds are null without inputs, and where
        the runtime cannot tell. The nodes are those of the model that really runs. Those of a body have the way to it
        in front of their id, ``[[[5, 0]], 2]`` for node 2 of the first body of node 5; their costs are those of one
        iteration, their seconds those of all, and node 5 has both too. Nodes that the runtime fuses are timed
        together: they have the number of their ``"group"``, which says ``"qualified_ids"``, ``"op_names"``,
        ``"node_names"`` and ``"secs_per_iter"``. What has a time, in the model itself, also says how many
        ``"operations"`` it takes (a multiply-add counts as two) and how many ``"bytes"`` it reads and writes (tensors
        whole, each once), with ``"gflop_per_s"`` and ``"gb_per_s"``: null where a size only comes up in the run.

        It is a text, which notebooks show as a table of what takes the time.
        """
        from tract_core.api.profile_text import ProfileText
        from tract_core.runtime.profile import profile

        arrays = None if inputs is None else self._calls.arrays(inputs)
        with calling(self.runtime, "run"):
            return ProfileText(profile(self.typed, self.plan, arrays))

    def chrome_trace(self, inputs: Sequence[Any] | Mapping[str, Any]) -> str:
        """The timeline of one turn for Perfetto and ``chrome://tracing``: JSON with ``traceEvents``, in microseconds.

        Raises Unsupported when the runtime cannot time single nodes.
        """
        from tract_core.runtime.profile import chrome_trace

        arrays = self._calls.arrays(inputs)
        with calling(self.runtime, "run"):
            return chrome_trace(self.typed, self.plan, arrays)

    def __str__(self) -> str:
        from tract_core.api.display import describe_model

        return describe_model(f"Runnable on {self.runtime.name()} ", self.typed)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tract_core.api.display import html_of

        return html_of(f"Runnable on {self.runtime.name()}", self.typed)

    def __rich_repr__(self) -> Any:
        from tract_core.api.display import rich_of

        yield "runtime", self.runtime.name()
        yield from rich_of(self.typed)

    def __reduce__(self) -> tuple[object, ...]:
        return _prepare_again, (self.runtime, self.typed)


def _prepare_again(runtime: Runtime, model: TypedModel) -> Runnable:
    from tract_core.api.model import Model

    return runtime.prepare(Model(model))
