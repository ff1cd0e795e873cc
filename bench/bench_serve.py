"""A server, beside ONNX Runtime in the same server: ``python bench/bench_serve.py [--rounds 5] [--seconds 1]``

A policy of 64-256-256-8 and MobileNetV2 at 224x224, one thread each, over HTTP and gRPC, by clients of the package
``tritonclient``: one of them, and eight at once, in threads of one process. Models are asked in turn, a short
round each. Prints medians over rounds: of the time of a request in milliseconds (p50, p99), of requests a second, and
the ratios of ONNX Runtime's to ours. ``direct`` is `Runnable.run`, without a server. Outputs are compared first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

INPUTS = {"policy": ("x", (1, 64)), "mobilenet": ("image", (1, 3, 224, 224))}
ENGINES = ("tract", "onnxruntime")
CLIENTS = (1, 8)


def write_models(folder: Path) -> None:
    """A repository in which each network is served twice: by us, and by ONNX Runtime."""
    from networks.signals import policy
    from networks.vision import mobilenet_v2

    for name, network in (("policy", policy()), ("mobilenet", mobilenet_v2())):
        model = onnx.load_from_string(network.model) if isinstance(network.model, bytes) else network.model
        del model.graph.value_info[:]  # which say sizes of one row
        for value in [*model.graph.input, *model.graph.output]:
            value.type.tensor_type.shape.dim[0].dim_param = "N"
        for engine in ENGINES:
            place = folder / f"{name}_{engine}" / "1"
            place.mkdir(parents=True)
            onnx.save(model, place / "model.onnx")
            told = {"threads": {"string_value": "1"}}
            if engine == "onnxruntime":
                told["kind"] = {"string_value": "onnxruntime"}
            (place.parent / "config.json").write_text(json.dumps({"parameters": told}))


def serve(folder: Path) -> None:
    """The server, in which ONNX Runtime is one more kind of model."""
    import tract_serve
    from tract_serve import kinds
    from tract_serve.models.recipe import ServingRecipe
    from tract_serve.models.served import Served
    from tract_serve.models.trying import tried

    class Session(Served):
        """A model that ONNX Runtime runs; all else is as it is for ours."""

        def _turn(self, inputs: Sequence[Any]) -> list[Any]:
            if not hasattr(self, "session"):
                import onnxruntime

                options = onnxruntime.SessionOptions()
                options.log_severity_level = 3  # sizes of one row, inside
                options.intra_op_num_threads = options.inter_op_num_threads = 1
                self.session = onnxruntime.InferenceSession(self.recipe.path, options)
            names = [port.name for port in self.signature.inputs]
            return self.session.run(None, dict(zip(names, inputs, strict=True)))

    def session(name: str, version: str, path: Path, config: Any, settings: Any) -> Any:
        recipe = ServingRecipe(str(path), threads=1)
        made = Session(name, version, recipe, config, tried(recipe, 600.0))
        made.warm_up()
        return made

    kinds.KINDS["onnxruntime"] = session
    settings = tract_serve.Settings(http_port=0, grpc_port=0, watch_s=0)
    tract_serve.Server(folder, settings).run(lambda server: print(server.http_port, server.grpc_port, flush=True))


def client_of(protocol: str, ports: Sequence[int]) -> Callable[[str, Any], Any]:
    """A function that asks a model by a client of its own, and gives its first output."""
    import tritonclient.grpc
    import tritonclient.http

    module = tritonclient.http if protocol == "http" else tritonclient.grpc
    client = module.InferenceServerClient(f"127.0.0.1:{ports[protocol == 'grpc']}")

    def ask(model: str, x: Any) -> Any:
        given = module.InferInput(INPUTS[model.split("_", maxsplit=1)[0]][0], list(x.shape), "FP32")
        given.set_data_from_numpy(x)
        answer = client.infer(model, [given])
        told = answer.get_response()
        name = told["outputs"][0]["name"] if protocol == "http" else told.outputs[0].name
        return answer.as_numpy(name)

    return ask


def measure(protocol: str, ports: Sequence[int], model: str, clients: int, seconds: float) -> dict[str, float]:
    """Requests of so many clients for so long."""
    _, shape = INPUTS[model.split("_", maxsplit=1)[0]]
    times: list[float] = []
    gate = threading.Barrier(clients + 1)

    def work(seed: int) -> None:
        ask = client_of(protocol, ports)
        x = np.random.default_rng(seed).standard_normal(shape, np.float32)
        ask(model, x)
        own: list[float] = []
        gate.wait()
        until = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < until:
            ask(model, x)
            own.append(time.perf_counter() - begun)
        times.extend(own)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    gate.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    return {"p50": float(p50), "p99": float(p99), "rate": len(times) / took}


def direct(folder: Path, name: str, seconds: float) -> float:
    """The median time of a run without a server, in milliseconds."""
    import tract_core as tract

    path = folder / f"{name}_tract" / "1" / "model.onnx"
    runnable = tract.runtime_for_name("cpu", threads=1).prepare(tract.load(path))
    x = np.zeros(INPUTS[name][1], np.float32)
    times: list[float] = []
    until = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < until:
        runnable.run([x])
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e3


def compare(ports: Sequence[int]) -> None:
    """Raises AssertionError where the engines disagree, over either protocol."""
    for name, (_, shape) in INPUTS.items():
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        found = [
            client_of(protocol, ports)(f"{name}_{engine}", x) for protocol in ("http", "grpc") for engine in ENGINES
        ]
        for one in found[1:]:
            np.testing.assert_allclose(found[0], one, rtol=1e-3, atol=1e-4 * np.abs(found[0]).max())


def report(ports: Sequence[int], folder: Path, rounds: int, seconds: float) -> None:
    for name in INPUTS:
        print(f"{name}: direct {direct(folder, name, seconds):.3f} ms")
        for protocol in ("http", "grpc"):
            for clients in CLIENTS:
                told: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
                for _ in range(rounds):
                    for engine in ENGINES:
                        told[engine].append(measure(protocol, ports, f"{name}_{engine}", clients, seconds))
                ours, theirs = (
                    {key: statistics.median(one[key] for one in told[engine]) for key in ("p50", "p99", "rate")}
                    for engine in ENGINES
                )
                ratios = [b["p50"] / a["p50"] for a, b in zip(told["tract"], told["onnxruntime"], strict=True)]
                rates = [a["rate"] / b["rate"] for a, b in zip(told["tract"], told["onnxruntime"], strict=True)]
                told_of = [
                    f"p50 {one['p50']:.2f} ms, p99 {one['p99']:.2f}, {one['rate']:.0f} a second"
                    for one in (ours, theirs)
                ]
                shares = f"p50 {statistics.median(ratios):.2f}, rate {statistics.median(rates):.2f} times"
                print(f"  {protocol:4} {clients} clients: {told_of[0]}; onnxruntime {told_of[1]}; {shares}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_models(folder)
        command = [sys.executable, __file__, "--serve", name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            ports = [int(port) for port in server.stdout.readline().split()]
            try:
                compare(ports)
                report(ports, folder, given.rounds, given.seconds)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
