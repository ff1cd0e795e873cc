"""Loops over the slices of a tensor: their bodies are fragments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tract_core.errors import CorruptModel
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.ops.scan import FullInput, FullOutput, InputMapping, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.plugins.tables import Rows
from tract_nnef.reading import values
from tract_nnef.reading.call import Call
from tract_nnef.reading.names import Spellings
from tract_nnef.reading.values import shown
from tract_nnef.registry import CORE, NNEF_WRITE, PY, reads
from tract_nnef.syntax.ast import Expression, Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_scan(body: string, scan: (string, tensor<?>, integer, integer)[], full: (string, tensor<?>)[] = [],"
    " state: (string, tensor<?>, string)[] = [], output: (string, string, integer, integer)[], skip: integer = 0,"
    " reset_every_turn: logical = false, external_state: logical = false, facts: string[] = false,"
    " extensions: string[] = [])"
    " -> (outputs: tensor<?>)",
)
def read_scan(call: Call) -> Sequence[OutletId]:
    """The body once for each slice.

    Other engines pass over ``facts``, those of the inputs of the body where they are not those of what it is fed, and
    ``extensions``, which say what it knows beside its graph. Raises CorruptModel for names that the body does not have,
    and where one of its parameters is not fed, or twice.
    """
    name = call.text("body")
    fragment = call.reader.operators.fragment(name)
    if fragment is None or fragment.body is None:
        raise CorruptModel(f"{call.name}: there is no fragment {name!r:.80} with a body")
    parameters = [parameter.name for parameter in fragment.parameters]
    fed = _fed(call, parameters)
    mappings = [fed[parameter][0] for parameter in parameters]
    inputs = [fed[parameter][1] for parameter in parameters]
    lines = [str(line) for line in values.items(call.value("extensions"))]
    body = call.reader.fragment(name, _facts(call, mappings, inputs), lines)
    roles = _Roles(call, parameters, [result.name for result in fragment.results])
    order, outputs = roles.mapped([parameter for parameter in parameters if isinstance(fed[parameter][0], StateInput)])
    body.set_outputs([body.outputs[place] for place in order])
    flags = call.flag("reset_every_turn"), call.flag("external_state")
    return call.ops(Scan(body, tuple(mappings), tuple(outputs), call.integer("skip"), *flags), *inputs)


def _fed(call: Call, parameters: Sequence[str]) -> dict[str, tuple[InputMapping, OutletId]]:
    """How each parameter of the body is fed, and with what."""
    found: dict[str, tuple[InputMapping, OutletId]] = {}

    def feed(named: str, mapping: InputMapping, tensor: Any) -> None:
        parameter = _one_of(call, named, parameters, "parameter")
        if parameter in found:
            raise CorruptModel(f"{call.name}: the parameter {parameter!r} of the body is fed twice")
        found[parameter] = mapping, call.constant(tensor) if not isinstance(tensor, OutletId) else tensor

    for named, tensor, axis, chunk in _tuples(call, "scan", 4):
        feed(named, ScannedInput(_integer(call, axis), _integer(call, chunk)), tensor)
    for named, tensor in _tuples(call, "full", 2):
        feed(named, FullInput(), tensor)
    for named, tensor, _ in _tuples(call, "state", 3):
        feed(named, StateInput(), tensor)
    missing = [parameter for parameter in parameters if parameter not in found]
    if missing:
        raise CorruptModel(f"{call.name}: nothing is fed to the parameters {', '.join(missing)} of the body")
    return found


def _facts(call: Call, mappings: Sequence[InputMapping], inputs: Sequence[OutletId]) -> list[TypedFact]:
    """The facts of the inputs of the body: as written, or as what they are fed."""
    if not call.has("facts"):
        return [slice_fact(mapping, call.fact(x)) for mapping, x in zip(mappings, inputs, strict=True)]
    texts = values.items(call.value("facts"))
    if len(texts) != len(inputs):
        raise CorruptModel(f"{call.name}: there are {len(texts)} facts for {len(inputs)} inputs of the body")
    return [parse_typed_fact(text if isinstance(text, str) else shown(text)) for text in texts]


def slice_fact(mapping: InputMapping, fact: TypedFact) -> TypedFact:
    """What an input of a body is that is fed a tensor of ``fact``. Raises CorruptModel for an axis that is none."""
    if not isinstance(mapping, ScannedInput):
        return fact.without_value()
    if not 0 <= mapping.axis < fact.rank or not mapping.chunk:
        raise CorruptModel(f"{fact} cannot be cut along axis {mapping.axis} in pieces of {mapping.chunk}")
    return fact.with_shape((*fact.shape[: mapping.axis], abs(mapping.chunk), *fact.shape[mapping.axis + 1 :]))


class _Roles:
    """What becomes of the results of a body: each may be state, joined and a last value, several times."""

    def __init__(self, call: Call, parameters: Sequence[str], results: Sequence[str]) -> None:
        self.results = results
        self.feeds = {
            _one_of(call, named, parameters, "parameter"): _one_of(call, result, results, "result")
            for named, _, result in _tuples(call, "state", 3)
        }
        self.full: dict[str, list[FullOutput]] = {result: [] for result in results}
        self.last: dict[str, list[int]] = {result: [] for result in results}
        for slot, (named, kind, axis, *chunk) in enumerate(_tuples(call, "output", 3, 4)):
            result = _one_of(call, named, results, "result")
            if kind == "full":
                self.full[result].append(
                    FullOutput(slot, _integer(call, axis), *(_integer(call, one) for one in chunk))
                )
            elif kind == "last":
                self.last[result].append(slot)
            else:
                raise CorruptModel(f"{call.name}: an output is {shown(kind)}, wanted 'full' or 'last'")

    def mapped(self, states: Sequence[str]) -> tuple[list[int], list[OutputMapping]]:
        """The results, by their places, as the outputs of a body in which the states are in order, and their mappings.

        ``states``: the parameters that are state. A result that has a role several times is there as often.
        """
        fed = [self.feeds[state] for state in states]
        order: list[int] = []
        outputs: list[OutputMapping] = []
        for place, result in enumerate(self.results):
            copies = max(1, fed.count(result), len(self.full[result]), len(self.last[result]))
            for copy in range(copies):
                full = next(iter(self.full[result][copy:]), None)
                last = next(iter(self.last[result][copy:]), None)
                order.append(place)
                outputs.append(OutputMapping(copy < fed.count(result), full, last))
        return self._in_order(fed, order, outputs)

    def _in_order(
        self, fed: Sequence[str], order: list[int], outputs: list[OutputMapping]
    ) -> tuple[list[int], list[OutputMapping]]:
        """The same, with what is state moved to the places of states so that it feeds them in order."""
        places = [at for at, mapping in enumerate(outputs) if mapping.state]
        waiting = list(places)
        moved = list(range(len(order)))
        for at, result in zip(places, fed, strict=True):
            found = next(one for one in waiting if self.results[order[one]] == result)
            waiting.remove(found)
            moved[at] = found
        return [order[at] for at in moved], [outputs[at] for at in moved]


def _tuples(call: Call, name: str, *lengths: int) -> list[tuple[Any, ...]]:
    """The tuples of an argument, each of which begins with a text."""
    found: list[tuple[Any, ...]] = []
    for one in values.items(call.value(name)):
        parts: tuple[Any, ...] = tuple(one) if values.is_array(one) else ()
        if len(parts) not in lengths or not isinstance(parts[0], str):
            raise CorruptModel(
                f"{call.name}: {name} has {shown(one)}, wanted {lengths[-1]} parts, of which the first is a text"
            )
        found.append(parts)
    return found


def _integer(call: Call, value: Any) -> int:
    return values.integer(value, call.model)


def _one_of(call: Call, named: Any, names: Sequence[str], what: str) -> str:
    """The parameter or result of a name, which may be one that NNEF could not write as it was."""
    if isinstance(named, str):
        found = named if named in names else Spellings(names).alike(named)
        if found is not None:
            return found
    raise CorruptModel(f"{call.name}: the body has no {what} {str(named)[:80]!r}; it has {', '.join(names)}"[:400])


@ROWS.row(NNEF_WRITE, Scan)
def write_scan(op: Scan, node: Spelling) -> Invocation | None:
    """The body as a fragment, whose inputs and outputs are called by their names there."""
    if not node.allows(CORE) or (op.body.properties and node.allows(PY)):
        return None
    return invoke_loop(op, node, node.inputs, "scan_body", _own_facts(op, node))


def invoke_loop(
    op: Scan, node: Spelling, inputs: Sequence[Expression], name: str, facts: list[str] | None = None
) -> Invocation | None:
    """A loop that is fed ``inputs``, with its body in a fragment whose name begins like ``name``.

    ``facts``: those of the inputs of the body where they are not those of what it is fed.
    """
    fragment, lines = node.writer.fragment(op.body, name)
    scan: list[Any] = []
    full: list[Any] = []
    state: list[Any] = []
    feeds = iter(fragment.results[place].name for place in op.state_outputs)
    for parameter, mapping, tensor in zip(fragment.parameters, op.inputs, inputs, strict=True):
        if isinstance(mapping, ScannedInput):
            scan.append((parameter.name, tensor, mapping.axis, mapping.chunk))
        elif isinstance(mapping, StateInput):
            state.append((parameter.name, tensor, next(feeds)))
        else:
            full.append((parameter.name, tensor))
    return node.invoke(
        "tract_core_scan",
        body=fragment.name,
        scan=scan,
        full=full,
        state=state,
        output=_outputs(op, [result.name for result in fragment.results]),
        skip=op.skip,
        reset_every_turn=op.reset_every_turn,
        external_state=op.external_state,
        facts=facts,
        extensions=list(lines) or None,
        registry=CORE,
    )


def _outputs(op: Scan, results: Sequence[str]) -> list[tuple[str, str, int, int]]:
    """What each output of the loop is, in order."""
    found: dict[int, tuple[str, str, int, int]] = {}
    for result, mapping in zip(results, op.outputs, strict=True):
        if mapping.full is not None:
            found[mapping.full.slot] = result, "full", mapping.full.axis, mapping.full.chunk
        if mapping.last is not None:
            found[mapping.last] = result, "last", 0, 1
    return [found[slot] for slot in range(len(found))]


def _own_facts(op: Scan, node: Spelling) -> list[str] | None:
    """The facts of the inputs of the body; ``None`` where they are those of what it is fed."""
    fed = [str(slice_fact(mapping, node.input_fact(slot))) for slot, mapping in enumerate(op.inputs)]
    own = [str(op.body.outlet_fact(outlet)) for outlet in op.body.inputs]
    return None if fed == own else own
