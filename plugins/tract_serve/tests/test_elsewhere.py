"""What runs the server elsewhere: an image, Kubernetes, KServe, MLflow.

No image is built here and no cluster asked: lines, ports, paths and fields are compared with what they name, and the
steps of the image are done by hand, as another user.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import grpc
import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from onnx import TensorProto
from servers import identity, network, onnx, process, put, serving, sum_and_difference
from tract_serve import server
from tract_serve.messages import message
from tract_serve.repository.layout import found_in
from tract_serve.routes import ROUTES
from tract_serve.settings import Limits, Settings

from tract_core.cli.frame import app
from tract_core.errors import InputError, ModelError

ROOT = Path(__file__).parents[3]
PLACE = ROOT / "examples" / "serving"
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
HEALTH = "/grpc.health.v1.Health/Check"
DEFAULT = Settings()

DOCUMENTS: list[Any] = [
    one for name in ("kubernetes", "kserve") for one in yaml.safe_load_all((PLACE / f"{name}.yaml").read_text())
]
DEPLOYMENT, SERVICE, RUNTIME, OVER_HTTP, OVER_GRPC = DOCUMENTS
POD = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,), (KSERVE,) = POD["containers"], RUNTIME["spec"]["containers"]

# The file of the image

INSTRUCTIONS = [
    tuple(line.split(maxsplit=1))
    for line in re.sub(
        r"\\\n\s*", "", re.sub(r"^#.*\n", "", (PLACE / "Containerfile").read_text(), flags=re.MULTILINE)
    ).splitlines()
    if line
]


def said(name: str) -> list[str]:
    """What follows each instruction of that name, in both stages."""
    return [rest for first, rest in INSTRUCTIONS if first == name]


VARIABLES = dict(word.split("=", 1) for word in shlex.split(said("ENV")[0]))
HEALTHCHECK: list[str] = json.loads(said("HEALTHCHECK")[0].partition("CMD ")[2])
ENTRYPOINT, COMMAND = json.loads(said("ENTRYPOINT")[0]), json.loads(said("CMD")[0])
USER = int(said("USER")[0].partition(":")[0])
WHEELS = [word.partition("-*")[0] for word in said("COPY")[0].split()[:-1]]


def test_the_image_has_what_the_server_needs_and_what_runs_anywhere() -> None:
    wanted, seen = {"tract-serve", *_ours(_project(ROOT)["optional-dependencies"]["standard"])}, set[str]()
    while wanted - seen:
        name = min(wanted - seen)
        seen.add(name)
        project = _project(ROOT if name == "tract-core" else ROOT / "plugins" / name.replace("-", "_"))
        wanted |= _ours(project["dependencies"])
        wanted |= _ours(project["optional-dependencies"]["chat"]) if name == "tract-serve" else set()
    assert [name.replace("-", "_") for name in sorted(seen)] == WHEELS


def _project(folder: Path) -> Any:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def _ours(requirements: list[str]) -> set[str]:
    return {found.group() for one in requirements if (found := re.match(r"tract-\w+", one))}


def test_the_image_needs_no_shell_and_no_root() -> None:
    first, last = said("FROM")
    assert first == f"{last} AS build"
    assert USER >= 1000
    assert f"--owner={USER} --group={USER}" in said("RUN")[1]
    assert said("RUN")[1].endswith(VARIABLES["TRACT_CACHE"])
    assert said("EXPOSE") == [f"{DEFAULT.http_port} {DEFAULT.grpc_port}"]
    assert HEALTHCHECK[0].startswith("/opt/tract/")
    assert VARIABLES["PATH"].startswith("/opt/tract/bin:")


# Lines of the command


@pytest.mark.parametrize(
    ("line", "http_port", "grpc_port"),
    [
        ([*ENTRYPOINT, *COMMAND], 8000, 8001),
        ([*ENTRYPOINT, *CONTAINER["args"]], 8000, 8001),
        ([*ENTRYPOINT, *KSERVE["args"]], 8080, 9000),
    ],
    ids=["image", "kubernetes", "kserve"],
)
def test_lines_are_taken(
    line: list[str], http_port: int, grpc_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command itself, up to where the server would start. ``{{.Name}}`` is the name of a service of KServe."""
    made: list[server.Server] = []
    monkeypatch.setattr(server.Server, "run", lambda self, _: made.append(self))
    shutil.copy(DIGITS, tmp_path)
    given = [word.replace("{{.Name}}", "seven") for word in line]
    assert given[2] in ("/models", "/mnt/models")
    done = CliRunner().invoke(app, ["serve", str(tmp_path), *given[3:]], prog_name="tract", catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (settings,) = [one.settings for one in made]
    assert (settings.host, settings.http_port, settings.grpc_port) == ("0.0.0.0", http_port, grpc_port)
    assert not settings.allows_control
    assert not settings.allows_shared_memory
    (name,) = found_in(tmp_path, settings)
    assert name == ("seven" if "--name=seven" in given else "digits")


def test_requests_and_the_cache_leave_room_in_the_memory_that_is_allowed() -> None:
    limits = dict(word.rpartition("--serve-limit=")[2].split("=") for word in CONTAINER["args"] if "limit" in word)
    assert 0 < int(limits["body_bytes"]) <= int(limits["bodies_bytes"]) < Limits().bodies_bytes
    assert int(limits["bodies_bytes"]) * 4 <= _bytes(CONTAINER["resources"]["limits"]["memory"])
    for container, volumes in ((CONTAINER, POD["volumes"]), (KSERVE, RUNTIME["spec"]["volumes"])):
        (cache,) = [one for one in volumes if "emptyDir" in one]
        variables = {one["name"]: one["value"] for one in container["env"]}
        assert _bytes(variables["TRACT_CACHE_SIZE"]) < _bytes(cache["emptyDir"]["sizeLimit"])


def _bytes(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([MG])iB?", text).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return int(number) << {"M": 20, "G": 30}[unit]


# Ports, paths, users


def test_ports_and_paths_are_those_of_the_server() -> None:
    ports = {one["name"]: one["containerPort"] for one in CONTAINER["ports"]}
    assert ports == {"http": DEFAULT.http_port, "grpc": DEFAULT.grpc_port}
    for probe in ("startupProbe", "livenessProbe"):
        assert CONTAINER[probe]["httpGet"]["port"] == "http"
        assert ("GET", CONTAINER[probe]["httpGet"]["path"]) in ROUTES
    assert CONTAINER["readinessProbe"]["grpc"] == {"port": ports["grpc"]}
    assert {one["name"]: (one["port"], one["targetPort"]) for one in SERVICE["spec"]["ports"]} == {
        name: (port, name) for name, port in ports.items()
    }
    started = CONTAINER["startupProbe"]["periodSeconds"] * CONTAINER["startupProbe"]["failureThreshold"]
    assert started >= Limits().load_s
    notes = DEPLOYMENT["spec"]["template"]["metadata"]["annotations"]
    assert notes["prometheus.io/port"] == str(ports["http"])
    assert ("GET", notes["prometheus.io/path"]) in ROUTES


def test_ports_and_paths_are_those_that_kserve_looks_for() -> None:
    """HTTP at 8080, as no port is said; gRPC where a service says one, called as Knative has it."""
    assert "ports" not in KSERVE
    assert KSERVE["readinessProbe"]["httpGet"] == {"path": "/v2/health/ready", "port": 8080}
    notes = RUNTIME["spec"]["annotations"]
    assert notes["prometheus.kserve.io/port"] == "8080"
    assert ("GET", notes["prometheus.kserve.io/path"]) in ROUTES
    for one, protocol in ((OVER_HTTP, "v2"), (OVER_GRPC, "grpc-v2")):
        told = one["spec"]["predictor"]["model"]
        assert told["runtime"] == RUNTIME["metadata"]["name"]
        assert told["protocolVersion"] == protocol
        assert protocol in RUNTIME["spec"]["protocolVersions"]
        assert told["modelFormat"] in [
            {"name": form["name"], "version": form["version"]} for form in RUNTIME["spec"]["supportedModelFormats"]
        ]
    assert OVER_GRPC["spec"]["predictor"]["model"]["ports"] == [
        {"name": "h2c", "protocol": "TCP", "containerPort": 9000}
    ]


def test_pods_may_do_little_and_have_time_to_end() -> None:
    for container in (CONTAINER, KSERVE):
        told = container["securityContext"]
        assert told["readOnlyRootFilesystem"] is True
        assert told["allowPrivilegeEscalation"] is False
        assert told["capabilities"] == {"drop": ["ALL"]}
        mounts = {one["mountPath"]: one for one in container["volumeMounts"]}
        (place,) = [one["value"] for one in container["env"] if one["name"] == "TRACT_CACHE"]
        assert place == VARIABLES["TRACT_CACHE"]
        assert [path for path, one in mounts.items() if not one.get("readOnly")] == [place]
    assert (POD["securityContext"]["runAsUser"], KSERVE["securityContext"]["runAsUser"]) == (USER, USER)
    assert {one["name"] for one in POD["volumes"]} == {one["name"] for one in CONTAINER["volumeMounts"]}
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert SERVICE["spec"]["selector"] == DEPLOYMENT["spec"]["selector"]["matchLabels"] == labels
    pause = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    for one in (POD, OVER_HTTP["spec"]["predictor"], OVER_GRPC["spec"]["predictor"]):
        assert one["terminationGracePeriodSeconds"] > pause + 2 * server.GRACE_S


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_fields_are_those_of_their_kind(document: Any) -> None:
    """As the clients of Kubernetes and of KServe know them, at every depth."""
    kserve, kubernetes = pytest.importorskip("kserve"), pytest.importorskip("kubernetes")
    names = {"Deployment": "V1Deployment", "Service": "V1Service"}
    names |= {"ClusterServingRuntime": "V1alpha1ClusterServingRuntime", "InferenceService": "V1beta1InferenceService"}
    assert list(_wrong(document, names[document["kind"]], document["kind"], (kserve, kubernetes.client))) == []


def _wrong(value: Any, kind: str, where: str, places: tuple[Any, ...]) -> Iterator[str]:
    """What is no field, or is of another kind than its field."""
    inner = re.fullmatch(r"[Ll]ist\[(.*)\]|[Dd]ict(?:\(|\[)str, (.*)(?:\)|\])", kind)
    if inner is not None:
        several = enumerate(value) if inner.group(1) else value.items()
        for key, one in several:
            yield from _wrong(one, inner.group(1) or inner.group(2), f"{where}.{key}", places)
    elif (found := next((made for place in places if (made := getattr(place, kind, None))), None)) is not None:
        known = {written: (name, found.openapi_types[name]) for name, written in found.attribute_map.items()}
        for key, one in value.items():
            if key not in known:
                yield f"{where}.{key}: no field of {kind}"
            else:
                yield from _wrong(one, known[key][1], f"{where}.{key}", places)
    elif kind in ("str", "bool", "int"):
        if type(value).__name__ != kind:
            yield f"{where}: {value!r} is no {kind}"
    elif kind not in ("object", "IntOrString", "ResourceQuantity"):
        yield f"{where}: {kind} is unknown"


# The steps of the image, by hand


class Installed:
    """An environment with the wheels of the image, and a user who owns nothing but a folder for the cache."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.python = folder, folder / "opt" / "bin" / "python"
        self.user = _user(interpreter := _interpreter())
        self._install(interpreter)
        (folder / "models").mkdir()
        shutil.copy(DIGITS, folder / "models")
        for path in (folder / "models" / DIGITS.name, folder / "models"):
            path.chmod(0o444 if path.is_file() else 0o555)
        self.cache = folder / "cache"
        self.cache.mkdir(mode=0o700)
        if self.user is not None:
            os.chown(self.cache, self.user, self.user)

    def _install(self, interpreter: str) -> None:
        """Build the wheels that the image copies, and install them; what others made is linked."""
        for name in WHEELS:
            source = ROOT if name == "tract_core" else ROOT / "plugins" / name
            build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(self.folder)]
            subprocess.run(build, cwd=source, check=True, capture_output=True, timeout=120)
        subprocess.run([interpreter, "-m", "venv", "--without-pip", str(self.folder / "opt")], check=True, timeout=60)
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet", "--no-index"]
        wheels = [str(path) for path in self.folder.glob("*.whl")]
        subprocess.run([*pip, "--no-deps", "--no-compile", *wheels], check=True, capture_output=True, timeout=120)
        (site,) = (self.folder / "opt" / "lib").glob("python*/site-packages")
        for place in _places():
            for one in place.iterdir():
                ours = one.name.startswith(("tract", "_tract", "__editable__", "_editable", "__pycache__"))
                if not ours and one.suffix != ".pth" and not (site / one.name).exists():
                    (site / one.name).symlink_to(one)

    def start(self) -> subprocess.Popen[str]:
        """The line of the image, on ports that are free."""
        line = [str(self.python.parent / ENTRYPOINT[0]), *ENTRYPOINT[1:], *COMMAND, "--http-port=0", "--grpc-port=0"]
        line = [str(self.folder / "models") if word == "/models" else word for word in line]
        variables = VARIABLES | {"TRACT_CACHE": str(self.cache), "PATH": f"{self.python.parent}:/usr/bin:/bin"}
        return subprocess.Popen(line, env=variables, stderr=subprocess.PIPE, text=True, cwd="/", **self.who())

    def who(self) -> dict[str, Any]:
        """How a process is started as that user."""
        return {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}

    def check(self, port: int) -> int:
        """The status of what looks after the health of the container, asked at another port."""
        line = [str(self.python), *HEALTHCHECK[1:-1], HEALTHCHECK[-1].replace(":8000/", f":{port}/")]
        return subprocess.run(line, capture_output=True, timeout=20, check=False, env={}, **self.who()).returncode


def _places() -> list[Path]:
    return [Path(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))]


def _interpreter() -> str:
    """An interpreter of this version, if there is one that another user may run; else this one."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    several = [os.path.realpath(sys.executable), *(f"{place}/{name}" for place in ("/usr/bin", "/usr/local/bin"))]
    return next((one for one in several if os.access(one, os.X_OK) and _is_open(Path(one))), several[0])


def _user(interpreter: str) -> int | None:
    """The user of the image, where this one is root, and that one can read what is installed; else this one."""
    may = os.geteuid() == 0 and all(_is_open(path) for path in (Path(interpreter), *_places()))
    return USER if may else None


def _is_open(path: Path) -> bool:
    return all(one.stat().st_mode & 0o001 for one in (path, *path.parents))


@pytest.fixture(scope="module")
def installed() -> Generator[Installed]:
    """Where every user may look, which is not so below pytest's own folder."""
    with tempfile.TemporaryDirectory(prefix="tract-image-") as name:
        Path(name).chmod(0o755)
        yield Installed(Path(name))


@pytest.mark.skipif(sys.platform == "win32", reason="an image of Linux")
def test_the_steps_of_the_image(installed: Installed) -> None:
    """It serves as a user with a number, from a folder that is only read, and ends when it is told to."""
    running = installed.start()
    try:
        ports = _ready(running)
        answer = _asked(f"http://127.0.0.1:{ports['http_port']}/v2/models/digits/infer", _request())
        assert np.isclose(sum(answer["outputs"][0]["data"]), 1, atol=1e-5)
        assert _health(f"127.0.0.1:{ports['grpc_port']}") == 1
        assert installed.check(ports["http_port"]) == 0
        if installed.user is not None:
            assert Path(f"/proc/{running.pid}").stat().st_uid == USER
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 0
        assert installed.check(ports["http_port"]) == 1
    finally:
        running.kill()
        running.communicate()
    kept = [path for path in installed.cache.rglob("*") if path.is_file()]
    assert kept
    assert [path.name for path in (installed.folder / "models").iterdir()] == [DIGITS.name]


def _ready(running: subprocess.Popen[str]) -> Mapping[str, int]:
    """The ports, once it says that it is ready."""
    told: list[str] = []
    assert running.stderr is not None
    for line in running.stderr:
        told.append(line)
        if '"server.ready"' in line:
            return json.loads(line)
    raise AssertionError("".join(told))


def _request() -> bytes:
    image = {"name": "image", "shape": [1, 1, 8, 8], "datatype": "FP32", "data": [0.5] * 64}
    return json.dumps({"inputs": [image]}).encode()


def _asked(address: str, body: bytes | None = None) -> Any:
    with urlopen(Request(address, body), timeout=20) as answer:
        return json.loads(answer.read())


def _health(address: str, service: str = "") -> int:
    """What Kubernetes' own probe asks over gRPC: 1 where it is served."""
    with grpc.insecure_channel(address) as channel:
        ask = channel.unary_unary(
            HEALTH, message("HealthCheckRequest").SerializeToString, message("HealthCheckResponse").FromString
        )
        return ask(message("HealthCheckRequest")(service=service), timeout=20).status


# What the server does for them


def test_probes_need_no_token(tmp_path: Path) -> None:
    put(tmp_path, "one", identity())
    with serving(tmp_path, tokens=("secret",)) as running:
        for path in ("live", "ready"):
            assert _asked(f"http://{running.http}/v2/health/{path}")[path] is True
        assert [_health(running.grpc, name) for name in ("", "one", "two")] == [1, 1, 2]
        for path in ("/v2", "/v2/models/one", "/v2/models/one/ready", "/metrics", "/v2/health/live/"):
            with pytest.raises(HTTPError) as refused:
                _asked(f"http://{running.http}{path}")
            assert refused.value.code == 401
        with grpc.insecure_channel(running.grpc) as channel, pytest.raises(grpc.RpcError) as stopped:
            channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(b"", timeout=20)
        assert stopped.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_the_name_of_one_model(tmp_path: Path) -> None:
    """That of its file, or of its folder where the file is called ``model``; of a repository, those it has."""
    named, told = Settings(name="seven"), Settings()
    onnx.save(identity(), tmp_path / "a.onnx")
    assert {name: one.versions for name, one in found_in(tmp_path, told).items()} == {"a": {1: tmp_path / "a.onnx"}}
    assert [*found_in(tmp_path, named)] == ["seven"]
    assert [*found_in(tmp_path / "a.onnx", named)] == ["seven"]
    onnx.save(identity(), tmp_path / "model.onnx")
    assert [*found_in(tmp_path, told)] == [tmp_path.name]
    (tmp_path / "model.onnx").rename(tmp_path / "b.onnx")
    assert [*found_in(tmp_path, named)] == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM there")
def test_it_ends_at_once_while_a_model_is_tried(tmp_path: Path) -> None:
    """Not when the trial ends, for which whoever ended it does not wait."""
    put(tmp_path / "models", "one", identity())
    (tmp_path / "sitecustomize.py").write_text(
        "import pathlib, sys, time\n"
        "if 'tract_serve.models.child' in sys.orig_argv:\n"
        f"    pathlib.Path({str(tmp_path / 'begun')!r}).touch()\n"
        "    time.sleep(100)\n"
    )
    with process(tmp_path / "models", environment={"PYTHONPATH": str(tmp_path)}, wait=False) as running:
        until = time.monotonic() + 30
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.02)
        begun = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(50) == 0
        assert time.monotonic() - begun < 20
        assert running.events[-1]["event"] == "server.ended"


# MLflow, which is not among what the tests need


@pytest.fixture
def pyfunc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """MLflow's, with what it writes in a folder that is thrown away."""
    mlflow = pytest.importorskip("mlflow", reason="MLflow brings dozens of packages")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    return mlflow.pyfunc


def _rows(count: int) -> np.ndarray[Any, Any]:
    return np.arange(count * 4, dtype=np.float32).reshape(count, 4)


def test_a_model_of_two_inputs_is_saved_as_it_is(pyfunc: Any, tmp_path: Path) -> None:
    from tract_serve.mlflow import save_model

    onnx.save(sum_and_difference(), tmp_path / "two.onnx")
    save_model(tmp_path / "saved", tmp_path / "two.onnx")
    kept = sorted(path.relative_to(tmp_path / "saved").as_posix() for path in (tmp_path / "saved").rglob("*.*"))
    assert kept == ["conda.yaml", "data/two.onnx", "python_env.yaml", "requirements.txt"]
    assert (tmp_path / "saved" / "data" / "two.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()
    assert "tract-serve==" in (tmp_path / "saved" / "requirements.txt").read_text()
    loaded = pyfunc.load_model(str(tmp_path / "saved"))
    inputs, outputs = loaded.metadata.signature.inputs, loaded.metadata.signature.outputs
    assert [(one.name, one.shape, one.type) for one in inputs.inputs] == [
        (name, (-1, 4), np.dtype(np.float32)) for name in ("a", "b")
    ]
    assert outputs.input_names() == ["sum", "difference"]
    for count in (0, 1, 3):
        found = loaded.predict({"a": _rows(count), "b": np.ones((count, 4), np.float32)})
        assert [*found] == ["sum", "difference"]
        np.testing.assert_array_equal(found["difference"], _rows(count) - 1)
    frame = sys.modules["pandas"].DataFrame({"a": list(_rows(3)), "b": list(_rows(3))})
    np.testing.assert_array_equal(loaded.predict(frame)["sum"], 2 * _rows(3))


def test_a_model_of_one_input_takes_arrays_and_frames(pyfunc: Any, tmp_path: Path) -> None:
    from tract_serve.mlflow import log_model, save_model

    onnx.save(identity(sizes=("N", 4)), tmp_path / "one.onnx")
    told = log_model(tmp_path / "one.onnx", "one", model_config={"runtime": "reference", "inputs": {"x": "3,4,f32"}})
    loaded = pyfunc.load_model(told.model_uri)
    assert loaded.metadata.signature.inputs.inputs[0].shape == (3, 4)
    np.testing.assert_array_equal(loaded.predict(_rows(3)), _rows(3))
    save_model(tmp_path / "saved", tmp_path / "one.onnx")
    loaded = pyfunc.load_model(str(tmp_path / "saved"))
    for count in (1, 2):
        found = loaded.predict(sys.modules["pandas"].DataFrame(_rows(count)))
        np.testing.assert_array_equal(found, _rows(count))
    save_model(tmp_path / "loose", tmp_path / "one.onnx", signature=False)
    frame = sys.modules["pandas"].DataFrame(_rows(2))
    assert [*pyfunc.load_model(str(tmp_path / "loose")).predict(frame).columns] == ["y"]
    save_model(tmp_path / "by_name", tmp_path / "one.onnx", by_name=True)
    found = pyfunc.load_model(str(tmp_path / "by_name")).predict({"x": _rows(2)})
    np.testing.assert_array_equal(found["y"], _rows(2))


def test_what_is_no_model_is_refused_before_anything_is_written(pyfunc: Any, tmp_path: Path) -> None:
    from tract_serve.mlflow import save_model

    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(ModelError):
        save_model(tmp_path / "saved", tmp_path / "bad.onnx")
    assert not (tmp_path / "saved").exists()


def test_what_does_not_fit_a_saved_model_is_said(tmp_path: Path) -> None:
    """Needs no MLflow."""
    from tract_serve.mlflow import Predictor

    onnx.save(sum_and_difference(), tmp_path / "two.onnx")
    two = Predictor(str(tmp_path / "two.onnx"))
    for given, wanted in (
        ({"a": _rows(1)}, "input 'b' is missing; there are: a"),
        (_rows(1), "input 'a' is missing; there are: no names"),
        ({"a": _rows(1), "b": [["x"] * 4]}, "input 'b' is no array of FP32"),
        ({"a": _rows(1), "b": [[1], [1, 2]]}, "input 'b' is no array of FP32"),
    ):
        with pytest.raises(InputError, match=wanted):
            two.predict(given)
    onnx.save(identity(TensorProto.INT8, ("N",)), tmp_path / "small.onnx")
    small = Predictor(str(tmp_path / "small.onnx"), threads=1)
    np.testing.assert_array_equal(small.predict([-128, 127]), np.array([-128, 127], np.int8))
    with pytest.raises(InputError, match="too large for INT8"):
        small.predict([128])
    assert small.predict({"x": [1]})["y"].tolist() == [1]


def test_frames_come_back_as_frames(tmp_path: Path) -> None:
    """Where MLflow hands one on, which it does for a model that is saved without a signature."""
    from tract_serve.mlflow import Predictor

    pandas = pytest.importorskip("pandas")
    onnx.save(sum_and_difference(), tmp_path / "two.onnx")
    frame = pandas.DataFrame({"a": list(_rows(2)), "b": [[1.0] * 4] * 2}, index=[5, 7])
    found = Predictor(str(tmp_path / "two.onnx")).predict(frame)
    assert [*found.columns, *found.index] == ["sum", "difference", 5, 7]
    np.testing.assert_array_equal(np.stack(found["sum"].tolist()), _rows(2) + 1)
    total = network([onnx.helper.make_node("ReduceSum", ["x"], ["y"])], [("x", 1, ("N",))], [("y", 1, (1,))])
    onnx.save(total, tmp_path / "total.onnx")
    with pytest.raises(InputError, match="no row for each of 3 rows"):
        Predictor(str(tmp_path / "total.onnx")).predict(pandas.DataFrame({"x": [1.0, 2.0, 3.0]}))
