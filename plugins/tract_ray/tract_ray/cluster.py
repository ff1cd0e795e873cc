"""What is done with a cluster of Ray: models in its object store, every node warmed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.errors import InputError, MissingFile
from tract_core.importing import imported
from tract_ray.placing import PlacedModel, digest_of_content
from tract_ray.predictor import warm
from tract_ray.worker import ray

if TYPE_CHECKING:
    from tract_ray.settings import ModelSource


def put(path: str | os.PathLike[str]) -> Any:
    """A model's file in Ray's object store, from where each node takes it once: a ``ray.ObjectRef`` for a Predictor.

    The model has to be in one file. Raises MissingFile, InputError for a folder, PluginError without Ray.
    """
    file = Path(path)
    if file.is_dir():
        raise InputError("it is a folder, and one file is placed", where=str(file), hint="cook it: 'tract MODEL cook'")
    if not file.exists():
        raise MissingFile("there is no such file", where=str(file))
    content = np.frombuffer(file.read_bytes(), np.uint8)
    return ray().put(PlacedModel(file.name, digest_of_content(content), content))


def warm_nodes(source: ModelSource, *, num_cpus: float = 1, **options: Any) -> dict[str, float]:
    """Have one worker of each node prepare a model, before others come: seconds, by the number of the node.

    ``num_cpus``: those of an actor that will score, as plans are kept for a number of threads. ``options``: those of
    `tract_ray.warm`. Kernels and plans are then in the cache of each node. Raises as that does.
    """
    here = ray()
    affinity: Any = imported("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
    nodes = [node["NodeID"] for node in here.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= num_cpus]
    task = here.remote(num_cpus=num_cpus)(warm)
    asked = [task.options(scheduling_strategy=affinity(node, soft=False)).remote(source, **options) for node in nodes]
    return dict(zip(nodes, here.get(asked), strict=True))
