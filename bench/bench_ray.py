"""Many images through MobileNetV2 on Ray, while somebody is killed: is each there once, and at what price?

``.venv-ray/bin/python bench/bench_ray.py [--rows 100000] [--size 224] [--batch 32] [--rounds 2]``, with what
``make test-ray`` installs.

A cluster of three nodes is started on this machine. Images are generated in its tasks, from their ids, so nothing is
read. First, speed: a `tract_ray.Predictor` and an actor written by hand, which only calls the model, in turns, without
faults. Told are images a second, and images a second that processors worked for it, which others on the machine disturb
less; and the medians of the ratios. Then the faults: all images, while the process of an actor is killed once a quarter
is done, and a node after half. Told is how many ids came back, whether each did once, and how many results are, bit for
bit, those of a plain loop in one process.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ray
from ray.cluster_utils import Cluster

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "plugins" / "tract_ray" / "tests")]

from ray_rows import workers_of  # noqa: E402
from tract_ray import Predictor  # noqa: E402
from tract_ray.placing import digest_of_content  # noqa: E402

import tract_core as tract  # noqa: E402
from networks.vision import mobilenet_v2  # noqa: E402 - found by the path above

NODES = 3


class ByHand:
    """What one writes without tract-ray."""

    def __init__(self, path: str, fact: str) -> None:
        model = tract.load(path, inputs={"image": fact})
        self.runnable = tract.runtime_for_name("default", threads=1).prepare(model)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        (scores,) = self.runnable.run([batch["image"]])
        return {"id": batch["id"], "scores": scores.view(), **times(len(batch["id"]))}


class ByPredictor(Predictor):
    """The same columns, of a predictor."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return super().__call__(batch) | times(len(batch["id"]))


def times(rows: int) -> dict[str, Any]:
    """When a batch was done, by whom, and how long its processors had worked by then: seconds."""
    told = {"done": time.time(), "pid": os.getpid(), "worked": time.process_time()}
    return {name: np.full(rows, one) for name, one in told.items()}


def images(ids: np.ndarray, size: int) -> np.ndarray:
    """One for each id, of random numbers between 0 and 1, by the first of them."""
    return np.random.default_rng(int(ids[0])).random((len(ids), 3, size, size), np.float32)


def digests(batch: dict[str, Any]) -> dict[str, Any]:
    """Of the results of each row, in place of them."""
    found = np.array([digest_of_content(one.tobytes()) for one in np.ascontiguousarray(batch["scores"])])
    return {"digest": found} | {name: one for name, one in batch.items() if name != "scores"}


def scored(kind: type, options: dict[str, Any], rows: int, given: argparse.Namespace) -> Any:
    """The rows, with a digest of what the model makes of each."""
    size, batch = given.size, given.batch
    pool = ray.data.ActorPoolStrategy(size=NODES)
    made = ray.data.range(rows, override_num_blocks=max(1, rows // (batch * given.batches)))
    made = made.map_batches(lambda one: {"id": one["id"], "image": images(one["id"], size)}, batch_size=batch)
    made = made.map_batches(kind, fn_constructor_kwargs=options, batch_size=batch, compute=pool, num_cpus=1)
    return made.map_batches(digests, batch_size=None)


def columns(dataset: Any) -> dict[str, np.ndarray]:
    batches = list(dataset.iter_batches(batch_size=None, batch_format="numpy"))
    return {name: np.concatenate([one[name] for one in batches]) for name in batches[0]}


def speed(kind: type, options: dict[str, Any], given: argparse.Namespace) -> np.ndarray:
    """Rows a second, and a second of processors, without what each worker does before its first batch is done."""
    found = columns(scored(kind, options, given.speed_rows, given))
    rows, worked = 0, 0.0
    for worker in np.unique(found["pid"]):
        spent = np.sort(found["worked"][found["pid"] == worker])
        rows += int((spent > spent[0]).sum())
        worked += spent[-1] - spent[0]
    done = np.sort(found["done"])
    return np.array([(done > done[0]).sum() / (done[-1] - done[0]), rows / worked])


def killing(cluster: Any, doomed: Any, seconds: tuple[float, float], told: list[str]) -> None:
    """Kill an actor and a node, so long after all actors are there."""
    raylets = [node.all_processes["raylet"][0].process.pid for node in cluster.list_all_nodes()]
    own = doomed.all_processes["raylet"][0].process.pid
    while sum(len(workers_of(one)) for one in raylets) < NODES:
        time.sleep(0.1)
    time.sleep(seconds[0])
    victim = next(pid for one in raylets if one != own for pid in workers_of(one))
    os.kill(victim, signal.SIGKILL)
    told.append(f"killed the actor {victim}")
    time.sleep(seconds[1])
    told.append(f"killed a node with {len(workers_of(own))} actors")
    cluster.remove_node(doomed, allow_graceful=False)


def plain_loop(path: str, given: argparse.Namespace) -> list[str]:
    """The digests of all rows, of a loop in this process."""
    predictor = Predictor(path, threads=1, columns=["id"], outputs={given.output: "scores"}, facts=given.facts)
    found: list[str] = []
    for at in range(0, given.rows, given.batch):
        ids = np.arange(at, min(at + given.batch, given.rows))
        result = predictor({"id": ids, "image": images(ids, given.size)}) | times(len(ids))
        found += digests(result)["digest"].tolist()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="a multiple of a block")
    parser.add_argument("--size", type=int, default=224, help="of images, in pixels along each side")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--batches", type=int, default=5, help="of a block")
    parser.add_argument("--rounds", type=int, default=2, help="of the comparison of speed")
    parser.add_argument("--speed-rows", type=int, default=0, help="of one of its turns; default: a tenth of all")
    given = parser.parse_args()
    given.speed_rows = given.speed_rows or given.rows // 10
    given.facts = {"image": f"N,3,{given.size},{given.size},f32"}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/mobilenet.onnx"
        network = mobilenet_v2(given.size)
        onnx.save(network.model, path)
        given.output = network.model.graph.output[0].name
        measure(path, given)


def measure(path: str, given: argparse.Namespace) -> None:
    paths = [str(ROOT / "bench"), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "RAY_USAGE_STATS_ENABLED": "0"}
    options = {"source": path, "facts": given.facts, "columns": ["id"], "outputs": {given.output: "scores"}}
    memory = {"object_store_memory": 400 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 3, "include_dashboard": False, **memory})
    doomed = [cluster.add_node(num_cpus=2, **memory) for _ in range(NODES - 1)][-1]
    ray.init(address=cluster.address, logging_level="error", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    ratios: list[np.ndarray] = []
    for _ in range(given.rounds):
        hand = speed(ByHand, {"path": path, "fact": given.facts["image"]}, given)
        ours = speed(ByPredictor, options, given)
        ratios.append(ours / hand)
        print(f"images a second, and of processors: by hand {hand.round(1)}, Predictor {ours.round(1)}", flush=True)
    if ratios:
        print(f"median ratios {np.median(ratios, axis=0).round(3)}", flush=True)
        expected = given.rows / ours[0]
    told: list[str] = []
    begin = time.time()
    pauses = (expected / 4, expected / 4) if ratios else (10.0, 10.0)
    threading.Thread(target=killing, args=(cluster, doomed, pauses, told), daemon=True).start()
    found = columns(scored(ByPredictor, options, given.rows, given))
    seconds = time.time() - begin
    print(*told, sep="\n", flush=True)
    ray.shutdown()
    cluster.shutdown()
    report(found, plain_loop(path, given), seconds, given)


def report(found: dict[str, np.ndarray], wanted: list[str], seconds: float, given: argparse.Namespace) -> None:
    order = np.argsort(found["id"])
    ids, digest = found["id"][order], found["digest"][order]
    once = np.array_equal(ids, np.arange(given.rows))
    print(f"{len(ids)} rows in {seconds:.0f} s with faults, {given.rows} wanted, each once: {once}")
    same = sum(one == other for one, other in zip(digest.tolist(), wanted, strict=False)) if once else 0
    print(f"bit-equal to the plain loop: {same} of {given.rows}")


if __name__ == "__main__":
    main()
