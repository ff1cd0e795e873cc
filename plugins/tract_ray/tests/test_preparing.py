"""Where models come from, and that each is prepared once: paths, bytes, files once a node, archives with code."""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tract_ray import PlacedModel, Predictor, warm
from tract_ray.kept import MODELS, KeptModels
from tract_ray.placing import digest_of_content, path_on_this_node
from tract_ray.preparing import scored_model
from tract_ray.settings import ModelRecipe

import tract_core as tract
from tract_core.errors import InputError, MissingFile, ModelError, PluginError
from tract_core.prepared.environment import CHECKS, COARSE
from tract_core.trusted_files import Distrusted


def model_of(predictor: Predictor) -> object:
    predictor({"x": np.zeros((1, 8), np.float32)})
    return predictor._scoring._model


def test_predictors_of_one_model_share_it(models) -> None:
    first, second = Predictor(models["dense"]), Predictor(Path(models["dense"]), on_error="null")
    assert model_of(first) is model_of(second) is model_of(pickle.loads(pickle.dumps(first)))
    assert model_of(Predictor(models["dense"], facts={"x": "16,8,f32"})) is not model_of(first)
    assert model_of(Predictor(models["dense"], threads=1)) is not model_of(first)


def test_a_file_that_changed_is_loaded_anew(models, rows, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(Path(models["dense"]).read_bytes())
    before = Predictor(path)({"x": rows})["y"]
    path.write_bytes(Path(models["of_any_length"]).read_bytes())
    assert Predictor(path)({"x": rows})["y"].tobytes() == (2 * rows).tobytes()
    assert before.tobytes() != (2 * rows).tobytes()


def test_bytes(models, rows) -> None:
    content = Path(models["dense"]).read_bytes()
    predictor = Predictor(content)
    assert predictor({"x": rows})["y"].tobytes() == Predictor(models["dense"])({"x": rows})["y"].tobytes()
    assert model_of(Predictor(bytes(bytearray(content)))) is model_of(predictor)
    assert repr(predictor) == "Predictor('bytes', runtime='default')"


def test_only_a_few_models_are_kept_for_who_comes_again() -> None:
    kept, made = KeptModels(2), []

    def make(name: str) -> object:
        return kept.get(name, lambda: made.append(name) or object())

    first = make("a")
    assert make("a") is first
    make("b"), make("c")
    assert make("b") is make("b")
    assert make("a") is not first
    assert made == ["a", "b", "c", "a"]


def test_threads_that_want_the_same_wait_for_each_other() -> None:
    kept, made, ready = KeptModels(), [], threading.Event()

    def make() -> object:
        made.append(1)
        ready.wait(5)
        return object()

    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(kept.get("key", make))) for _ in range(4)]
    for thread in threads:
        thread.start()
    ready.set()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(set(map(id, found))) == 1


def test_what_fails_is_tried_again() -> None:
    kept = KeptModels()
    with pytest.raises(ZeroDivisionError):
        kept.get("key", lambda: 1 / 0)
    assert kept.get("key", lambda: 7) == 7


def placed(path: str, name: str = "model.onnx") -> PlacedModel:
    content = np.frombuffer(Path(path).read_bytes(), np.uint8)
    return PlacedModel(name, digest_of_content(content), content)


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_placed_model_is_a_file_once_a_node(models, rows, own_folder: Path) -> None:
    model = placed(models["dense"])
    path = path_on_this_node(model)
    assert path.read_bytes() == Path(models["dense"]).read_bytes()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    before = path.stat().st_ino
    assert path_on_this_node(model) == path
    assert path.stat().st_ino == before
    found = Predictor(model)({"x": rows})["y"]
    assert found.tobytes() == Predictor(models["dense"])({"x": rows})["y"].tobytes()
    assert len(list(path.parent.iterdir())) == 1


def test_the_name_of_a_placed_model_leads_nowhere_else(models, own_folder: Path) -> None:
    path = path_on_this_node(placed(models["dense"], "../../other/model.onnx"))
    assert path.parent.parent == own_folder.resolve()


def test_a_folder_that_others_can_write_to_is_not_used(models, own_folder: Path) -> None:
    path = path_on_this_node(placed(models["dense"]))
    path.parent.chmod(0o777)
    with pytest.raises(Distrusted, match="its mode is 0777"):
        path_on_this_node(placed(models["dense"]))


def test_a_file_that_is_cut_off_is_written_anew(models, own_folder: Path) -> None:
    path = path_on_this_node(placed(models["dense"]))
    path.write_bytes(b"cut")
    assert path_on_this_node(placed(models["dense"])).read_bytes() == Path(models["dense"]).read_bytes()


@pytest.fixture(scope="module")
def archive(models, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The model of a batch of 16, with machine code."""
    from click.testing import CliRunner

    from tract_core.cli.frame import app

    path = tmp_path_factory.mktemp("archive") / "dense.nnef.tar"
    result = CliRunner().invoke(app, [models["dense16"], "cook", "--compiled", "-o", str(path)], prog_name="tract")
    assert result.exit_code == 0, result.output
    return str(path)


@pytest.mark.parametrize("count", [0, 1, 16, 100])
def test_machine_code_of_an_archive(models, rows, archive, count) -> None:
    from tract_cpu import compiled_in

    digest = compiled_in(archive).digest
    wanted = Predictor(models["dense16"], threads=1)({"x": rows[:count]})["y"]
    for trust in (digest, True):
        predictor = Predictor(archive, trust=trust)
        assert predictor({"x": rows[:count]})["y"].tobytes() == wanted.tobytes()
        assert pickle.loads(pickle.dumps(predictor))({"x": rows[:count]})["y"].tobytes() == wanted.tobytes()


def test_machine_code_is_not_run_for_who_trusts_another(models, rows, archive) -> None:
    with pytest.raises(InputError, match=r"the digest of its machine code is .*, and 'abc' is trusted"):
        Predictor(archive, trust="abc")
    with pytest.raises(InputError, match=r"there is no machine code in it|it is no tar"):
        Predictor(models["dense"], trust=True)
    without = Predictor(archive)  # the model in it, without its code
    np.testing.assert_allclose(without({"x": rows})["y"], Predictor(models["dense"])({"x": rows})["y"], atol=1e-5)


def test_threads_run_machine_code_in_memory_of_their_own(rows, archive) -> None:
    predictor, found = Predictor(archive, trust=True), []
    wanted = predictor({"x": rows})["y"].tobytes()
    threads = [threading.Thread(target=lambda: found.append(predictor({"x": rows})["y"].tobytes())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 8


def test_what_cannot_be(models) -> None:
    for options, told in (
        ({"threads": 0}, "threads is 0, wanted a number from 1 on, 'from_ray' or None"),
        ({"threads": "all"}, "threads is 'all'"),
        ({"trust": True, "facts": {"x": "1,8,f32"}}, "the sizes of compiled models are fixed"),
        ({"on_error": "ignore"}, "on_error is 'ignore', wanted one of 'raise', 'null', 'dead_letter'"),
        ({"on_error": "dead_letter"}, "on_error='dead_letter' and dead_letter=FOLDER go together"),
        ({"dead_letter": "folder"}, "go together"),
        ({"at_once": 0}, "at_once is 0, wanted a number of rows from 1 on, or None"),
        ({"at_once": True}, "at_once is True"),
        ({"inputs": "x"}, "names are given as a dictionary, from those of the model to columns; got str"),
        ({"inputs": {"z": "x"}}, "the model has no input 'z'; it has 'x'"),
        ({"outputs": {"yy": "x"}}, "the model has no output 'yy'; it has 'y'"),
    ):
        with pytest.raises(InputError) as raised:
            Predictor(models["dense"], **options)
        assert told in str(raised.value)
    with pytest.raises(InputError, match="two outputs have one column: 'a', 'a'"):
        Predictor(models["of_two"], outputs={"sum": "a", "total": "a"})
    with pytest.raises(InputError, match="trust is for the machine code of an archive"):
        Predictor(b"", trust=True)
    with pytest.raises(InputError, match="a model is given by its path, or as bytes or a reference to them; got int"):
        Predictor(3)
    with pytest.raises(MissingFile, match=r"missing\.onnx: there is no such file"):
        Predictor("missing.onnx")
    with pytest.raises(ModelError):
        Predictor(b"no model")


def test_columns_that_are_not_there(models, rows) -> None:
    predictor = Predictor(models["dense"])
    with pytest.raises(InputError, match="the batch has no column 'x', which input 'x' is to have; it has 'a', 'b'"):
        predictor({"a": rows, "b": rows})
    assert predictor({"a": rows})["y"].shape == (100, 8)  # the only one
    with pytest.raises(
        InputError, match="no column 'row', which is to be kept; it has 'rows', 'x'\n  hint: did you mean"
    ):
        Predictor(models["dense"], columns=["row"])({"rows": rows, "x": rows})
    with pytest.raises(InputError, match="the batch has a column 'y' already"):
        predictor({"x": rows, "y": rows})
    with pytest.raises(InputError, match="the batch has a column 'error' already"):
        Predictor(models["dense"], on_error="null")({"x": rows, "error": rows})
    assert "error" in Predictor(models["dense"])({"x": rows, "error": rows})


def test_a_runtime_without_threads_has_none(models, rows) -> None:
    assert Predictor(models["dense"], runtime="reference")({"x": rows})["y"].shape == (100, 8)
    with pytest.raises(InputError, match="reference has no parameter 'threads'"):
        Predictor(models["dense"], runtime="reference", threads=2)
    with pytest.raises(PluginError, match="runtime 'none' is not installed"):
        Predictor(models["dense"], runtime="none")


def test_the_share_of_a_worker_is_what_a_run_may_use(models, monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, object]] = []
    prepare = tract.Runtime.prepare
    monkeypatch.setattr(
        tract.Runtime, "prepare", lambda self, model: options.append(self.options()) or prepare(self, model)
    )
    monkeypatch.setattr("tract_ray.preparing.cpus_of_this_worker", lambda: 3)
    monkeypatch.setattr("tract_ray.preparing.MODELS", KeptModels())
    scored_model(ModelRecipe(models["dense"], {}, "default", "from_ray", trust=False))
    scored_model(ModelRecipe(models["dense"], {}, "cpu(threads=2)", "from_ray", trust=False))
    scored_model(ModelRecipe(models["dense"], {}, "reference", "from_ray", trust=False))
    scored_model(ModelRecipe(models["dense"], {}, "default", None, trust=False))
    assert options == [{"threads": 3}, {"threads": 2}, {}, {}]


def wait_until_settled(path: Path) -> None:
    """Of a file that was written just now nothing is kept: it may change once more without its time telling it."""
    while os.stat(path).st_ctime > time.time() - COARSE:
        time.sleep(0.1)


def test_who_warms_a_cache_saves_others_the_work(models, tmp_path: Path) -> None:
    """Kernels and the plan are kept by the first process; the second compiles nothing and reads no model."""
    code = (
        "import sys; from tract_ray import warm; warm(sys.argv[1], threads=1); "
        "print('llvmlite.binding' in sys.modules or 'onnx' in sys.modules)"
    )
    usual = {name: value for name, value in os.environ.items() if name not in CHECKS}  # with which nothing is kept
    variables = usual | {"TRACT_CACHE": str(tmp_path / "cache")}
    wait_until_settled(Path(models["dense"]))
    found = [
        subprocess.run(
            [sys.executable, "-c", code, models["dense"]],
            env=variables,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.strip()
        for _ in range(2)
    ]
    assert found == ["True", "False"]
    assert warm(models["dense"]) < 60


def test_a_fork_while_a_model_is_prepared_leaves_no_lock_behind() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("the system does not fork")
    code = """
import os, threading, time
from tract_ray.kept import MODELS
begun = threading.Event()
threading.Thread(target=MODELS.get, args=("key", lambda: begun.set() or time.sleep(3) or 1)).start()
begun.wait()
child = os.fork()
if not child:
    os._exit(MODELS.get("key", lambda: 7))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "7"


def test_importing_the_package_imports_neither_ray_nor_arrow() -> None:
    code = "import sys, tract_ray; tract_ray.Predictor; tract_ray.put; print(' '.join(sys.modules))"
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert "tract_ray.predictor" in loaded
    assert not loaded & {"ray", "pyarrow", "pandas", "dask", "pyspark", "tract_cpu", "tract_onnx"}


def test_without_ray_it_is_said_how_to_get_it(models, monkeypatch: pytest.MonkeyPatch) -> None:
    from tract_ray import put, warm_nodes
    from tract_ray.serve import deployment

    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.serve", None)
    for call in (lambda: put(models["dense"]), lambda: warm_nodes(models["dense"])):
        with pytest.raises(PluginError, match=r"Ray is not installed\n  hint: pip install 'ray\[data\]'"):
            call()
    with pytest.raises(PluginError, match=r"Ray Serve is not installed\n  hint: pip install 'ray\[serve\]'"):
        deployment(dict)
    with pytest.raises(MissingFile, match="there is no such file"):
        put("missing.onnx")
    with pytest.raises(InputError, match="it is a folder, and one file is placed\n  hint: cook it"):
        put(Path(models["dense"]).parent)


def test_kept_models_are_those_of_this_process() -> None:
    assert isinstance(MODELS, KeptModels)
