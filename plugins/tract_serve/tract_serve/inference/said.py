"""What a model says of itself, as the protocol has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tract_serve.batching.statistics import Duration, Statistics
from tract_serve.messages import ENUMS, message
from tract_serve.models.served import Served
from tract_serve.tensors.ports import Port

if TYPE_CHECKING:
    from tract_serve.repository.repository import Repository
    from tract_serve.serving import Serving


def metadata_of(repository: Repository, served: Served) -> dict[str, Any]:
    """Names, versions, inputs and outputs."""
    versions = [str(number) for number in repository.models.get(served.name, {})] or [served.version]
    return {
        "name": served.name,
        "versions": versions,
        "platform": f"tract_{served.runtime}",
        "inputs": [_port(one) for one in served.signature.inputs],
        "outputs": [_port(one) for one in served.signature.outputs],
    }


def _port(port: Port) -> dict[str, Any]:
    return {"name": port.name, "datatype": port.datatype, "shape": port.shape}


def config_of(served: Served) -> Any:
    """The configuration of a model, with what was left out as the model has it: a ``ModelConfig``."""
    made: Any = message("ModelConfig")()
    made.CopyFrom(served.config.told)
    served.complete(made)
    rows = served.found.rows if served.config.joins else None
    made.name, made.backend = served.name, "tract"
    made.platform = made.platform or f"tract_{served.runtime}"
    if not made.max_batch_size and rows is not None and not any(rows.inputs) and not any(rows.outputs):
        made.max_batch_size = served.config.waiting(rows).most_rows
        if made.WhichOneof("scheduling_choice") is None:
            made.dynamic_batching.SetInParent()
    first = 1 if made.max_batch_size else 0
    _tell_ports(made.input, served.signature.inputs, first)
    _tell_ports(made.output, served.signature.outputs, first)
    if not made.instance_group:
        made.instance_group.add(name=served.name, count=1, kind=ENUMS["InstanceKind"]["KIND_CPU"])
    return made


def _tell_ports(told: Any, ports: Sequence[Port], first: int) -> None:
    """All ports in their order, as the model has them; what else is said of one stays. ``first``: axis that is told."""
    said = {one.name: one for one in [*told]}
    del told[:]
    for port in ports:
        made = told.add()
        if port.name in said:
            made.CopyFrom(said[port.name])
        kind = "STRING" if port.datatype == "BYTES" else port.datatype
        made.name, made.data_type, made.dims[:] = port.name, ENUMS["DataType"][f"TYPE_{kind}"], port.shape[first:]


def statistics_of(serving: Serving, name: str = "", version: str = "") -> Any:
    """How often models were asked: a ``ModelStatisticsResponse``; all versions, unless one is named.

    Raises NotFound, Busy.
    """
    made: Any = message("ModelStatisticsResponse")()
    models = serving.repository.models
    if name:
        serving.repository.model(name, version)
    asked = {name: models[name]} if name else models
    found = [one for all_ in asked.values() for one in all_.values()]
    for one in [one for one in found if version in ("", one.version)]:
        if isinstance(one, Served):
            _add(made.model_stats.add(name=one.name, version=one.version), one.statistics)
    return made


def _add(made: Any, told: Statistics) -> None:
    made.last_inference, made.inference_count, made.execution_count = told.last, told.rows, told.runs
    for name in ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output"):
        _set(getattr(made.inference_stats, name), getattr(told, name))
    for name in ("cache_hit", "cache_miss"):  # there is no cache of answers
        getattr(made.inference_stats, name).SetInParent()
    for size, parts in sorted(told.batches.items()):
        batch = made.batch_stats.add(batch_size=size)
        for name, part in zip(("compute_input", "compute_infer", "compute_output"), parts, strict=True):
            _set(getattr(batch, name), part)


def _set(made: Any, told: Duration) -> None:
    made.count, made.ns = told.count, told.ns
