"""On a cluster of three nodes of this machine: an actor and a node are killed, and no row is lost, or changed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ray_rows import BATCH, KILLED, application, generated, rows_of, waiting, workers_of
from tract_ray import BadRows, Predictor, put, warm_nodes
from tract_ray.serve import deployment
from tract_ray.worker import cpus_of_this_worker

ray: Any = pytest.importorskip("ray", reason="run by `make test-ray`")

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ["TRACT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ[KILLED] = str(tmp_path_factory.mktemp("signs") / "killed")
    memory = {"object_store_memory": 100 << 20, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, **memory})
    for _ in range(2):
        made.add_node(num_cpus=1, object_store_memory=100 << 20)
    ray.init(address=made.address, logging_level="error", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield made
    ray.shutdown()
    made.shutdown()
    del os.environ["TRACT_CACHE"], os.environ[KILLED]


def scored(dataset: Any, model: Any, actors: int = 2, **options: Any) -> Any:
    pool = ray.data.ActorPoolStrategy(size=actors)
    keywords = {"source": model, "columns": ["id"], **options}
    return dataset.map_batches(
        Predictor, fn_constructor_kwargs=keywords, batch_size=BATCH, batch_format="numpy", compute=pool, num_cpus=1
    )


def by_id(dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    batches = list(dataset.iter_batches(batch_size=None, batch_format="numpy"))
    ids, y = (np.concatenate([batch[name] for batch in batches]) for name in ("id", "y"))
    order = np.argsort(ids)
    return ids[order], y[order]


def plain_loop(model: str, count: int) -> np.ndarray:
    predictor = Predictor(model, columns=["id"], threads=1)
    ids = np.arange(count).reshape(-1, BATCH)
    return np.concatenate([predictor({"id": one, "x": rows_of(one)})["y"] for one in ids])


def ids(count: int) -> Any:
    return ray.data.range(count, override_num_blocks=count // BATCH)


def test_a_worker_knows_its_share_and_others_do_not(cluster) -> None:
    assert cpus_of_this_worker() is None
    assert ray.get(ray.remote(num_cpus=2)(cpus_of_this_worker).remote()) == 2
    assert ray.get(ray.remote(num_cpus=0.5)(cpus_of_this_worker).remote()) == 1


def test_a_model_that_is_put_is_warm_on_each_node_and_scores(cluster, models) -> None:
    reference = put(models["dense"])
    assert len(warm_nodes(reference)) == 3
    found, y = by_id(scored(ids(200).map_batches(generated, batch_size=BATCH), reference))
    assert found.tolist() == list(range(200))
    assert y.tobytes() == plain_loop(models["dense"], 200).tobytes()


def test_a_model_that_is_there_as_bytes(cluster, models) -> None:
    reference = ray.put(Path(models["dense"]).read_bytes())
    batch = generated({"id": np.arange(BATCH)})
    y = ray.get(ray.remote(lambda: Predictor(reference)(batch)["y"]).remote())
    assert y.tobytes() == plain_loop(models["dense"], BATCH).tobytes()


def test_tables_of_parquet_with_a_bad_row(cluster, models, tmp_path: Path, rows) -> None:
    listed = rows.tolist()
    listed[17] = None
    table = pa.table({"id": np.arange(100), "x": pa.array(listed, pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "rows.parquet")
    dataset = ray.data.read_parquet(str(tmp_path)).map_batches(
        Predictor,
        fn_constructor_kwargs={"source": models["dense"], "columns": ["id"], "on_error": "null"},
        batch_size=None,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=1),
    )
    (batch,) = dataset.iter_batches(batch_size=None, batch_format="numpy")
    assert batch["id"].tolist() == list(range(100))
    assert batch["error"].tolist() == [None if row != 17 else "column 'x': it is null" for row in range(100)]
    rows[17] = rows[0]
    wanted = Predictor(models["dense"], threads=1)({"x": rows})["y"]
    assert np.delete(batch["y"], 17, axis=0).tobytes() == np.delete(wanted, 17, axis=0).tobytes()


def test_one_bad_row_in_ten_thousand_loses_itself(cluster, models, tmp_path: Path) -> None:
    index = np.arange(10_000) % 10
    index[4711] = 99
    dataset = ray.data.from_arrow(
        [pa.table({"id": np.arange(at, at + 1000), "index": index[at : at + 1000]}) for at in range(0, 10_000, 1000)]
    )

    def run(**options: Any) -> Any:
        return dataset.map_batches(
            Predictor,
            fn_constructor_kwargs={"source": models["looked_up"], "columns": ["id"], **options},
            batch_size=1000,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=2),
        ).materialize()

    rest = run(on_error="dead_letter", dead_letter=str(tmp_path))
    kept = np.sort(np.concatenate([one["id"] for one in rest.iter_batches(batch_format="numpy")]))
    assert kept.tolist() == [row for row in range(10_000) if row != 4711]
    (letter,) = tmp_path.iterdir()
    assert pq.read_table(letter)["id"].to_pylist() == [4711]
    with pytest.raises(Exception, match=r"1 of 1000 rows cannot be scored:\n  row 711: ") as raised:
        run()
    assert "BadRows" in str(raised.value) or isinstance(raised.value.__cause__, BadRows)


def test_an_application_is_mounted_in_ray_serve(cluster) -> None:
    serve = pytest.importorskip("ray.serve", reason="needs Ray Serve")
    serve.start(http_options={"port": 8123})
    try:
        serve.run(deployment(application, "hello", num_replicas=1, ray_actor_options={"num_cpus": 1}), route_prefix="/")
        text = urlopen("http://127.0.0.1:8123/a/path", timeout=20).read().decode()
    finally:
        serve.shutdown()
    assert text.startswith("hello /a/path ['lifespan.startup'] ")
    assert int(text.split()[-1]) != os.getpid()


def test_an_actor_and_a_node_are_killed_in_the_middle(cluster, models) -> None:
    """The last one, as a node is gone after it."""
    count = 3000
    doomed = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    killed: list[Any] = []

    def kill() -> None:
        raylets = [node.all_processes["raylet"][0].process.pid for node in cluster.list_all_nodes()]
        wait_for(lambda: sum(len(workers_of(one)) for one in raylets) >= 3)
        time.sleep(1)
        others = [
            pid for one in raylets for pid in workers_of(one) if one != doomed.all_processes["raylet"][0].process.pid
        ]
        os.kill(others[0], signal.SIGKILL)
        killed.append(others[0])
        time.sleep(1)
        killed.append(workers_of(doomed.all_processes["raylet"][0].process.pid))
        cluster.remove_node(doomed, allow_graceful=False)
        Path(os.environ[KILLED]).touch()

    thread = threading.Thread(target=kill)
    thread.start()
    result = scored(
        ids(count).map_batches(generated, batch_size=BATCH), models["dense"], actors=3, progress=waiting
    ).materialize()
    assert len(killed) == 2, "the work was done before somebody was killed"
    thread.join()
    found, y = by_id(result)
    assert found.tolist() == list(range(count))
    assert y.tobytes() == plain_loop(models["dense"], count).tobytes()


def wait_for(condition: Any, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
