"""The third party's distributions of ``examples/plugins``: built, installed into a fresh environment, used there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import onnx
import pytest
from example_environment import BROKEN, DECAY, EXAMPLES, Environment, smooth_file
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture(scope="module")
def model(environment: Environment) -> Path:
    return smooth_file(environment.folder)


def signal(length: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).normal(size=(length, 3)).astype(np.float32)


def smoothed(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the model computes, as explicit weighted sums in float64."""
    decay = np.array(DECAY, np.float32).astype(np.float64)
    age = np.arange(len(x))[:, None] - np.arange(len(x))[None, :]
    weights = np.where(age[..., None] >= 0, (1 - decay) * decay ** np.maximum(age, 0)[..., None], 0)
    return np.einsum("tsc,sc->tc", weights, 2 * x.astype(np.float64))


def listing(environment: Environment, *flags: str, status: int = 0) -> dict[str, Any]:
    return {one["name"]: one for one in json.loads(environment.tract("plugins", "--json", *flags, status=status))}


@pytest.mark.parametrize("readme", sorted(EXAMPLES.glob("*/README.md")), ids=lambda path: path.parent.name)
def test_what_its_page_shows_runs(environment: Environment, model: Path, readme: Path) -> None:
    """As pasted, but for the installation, which is done, and for most cases of the kit."""
    (environment.folder / "model.onnx").write_bytes(model.read_bytes())
    (lines,) = re.findall(r"```console\n(.*?)```", readme.read_text(), re.DOTALL)
    for line in lines.splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "))
        if program == "tract":
            environment.tract(*arguments)
        elif program == "pytest":
            environment.run("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, "-k", "contract")
        else:
            assert (program, *arguments) == ("pip", "install", ".")


def test_a_plugin_that_the_command_makes(environment: Environment, tmp_path: Path) -> None:
    """It is installed as it is; its tests pass, and so does the conformance kit on its cases."""
    environment.tract("init", "plugin", "soft-clip", "-o", tmp_path / "made")
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    pip[2:2] = ["--python", str(environment.python), "--disable-pip-version-check"]
    subprocess.run([sys.executable, *pip, tmp_path / "made"], check=True, timeout=300)
    assert listing(environment, "--check", status=1)["soft-clip"]["state"] == "loaded"
    quietly = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    environment.run(*quietly, tmp_path / "made")
    kit = ("--pyargs", "tract_core.testing", "--tract-runtime", "reference", "-k", "SoftClip or soft_clip")
    assert " passed" in environment.run(*quietly, *kit).stdout


class TestListing:
    def test_every_plugin_is_there_with_its_state_and_hooks(self, environment):
        listed = listing(environment)
        states = {name: one["state"] for name, one in listed.items()}
        assert (
            states.items()
            >= {
                "example": "available",
                "broken-import": "failed",
                "broken-hook": "failed",
                "broken-rows": "available",
                "broken-runtime": "available",
            }.items()
        )
        example = listed["example"]
        assert (example["distribution"], example["version"]) == ("tract-example", "0.1.0")
        assert set(example["hooks"]) >= {"tract_rows", "tract_runtimes", "tract_commands"}

    def test_the_cause_of_every_failure_is_told(self, environment):
        listed = listing(environment, "--check", status=1)
        found = {(name, one["doing"]): one["problem"] for name, plugin in listed.items() for one in plugin["failures"]}
        assert found == {
            ("broken-import", "import of broken_import.plugin"): (
                "ModuleNotFoundError: No module named 'library_that_is_not_there'"
            ),
            ("broken-hook", "hook tract_transforms"): (
                "returned a list, wanted texts by name, as {'toy': 'my_plugin.toy:Toy'}"
            ),
            ("broken-hook", "hook tract_commands"): "KeyError: 'commands'",
            ("broken-rows", "rows in broken_rows.clash"): (
                "table 'reference': both tract-core and tract-broken-rows have a row for tract_core.ops.elementwise:Exp"
                "; that of tract-core is used"
            ),
            ("broken-runtime", "load runtime 'broken-import'"): "OSError: libdevice.so.7: undefined symbol",
            ("broken-runtime", "set-up of runtime 'broken-construction'"): "MemoryError: no room for a device",
            ("broken-runtime", "set-up of runtime 'broken-question'"): "ZeroDivisionError: devices per rack",
        }
        assert listed["example"]["state"] == "loaded"
        assert listed["broken-hook"]["unusable_runtimes"] == {
            "absent": "runtime 'absent' does not work here: no device of this kind is plugged in"
        }
        (cause,) = listed["broken-import"]["failures"]
        assert cause["traceback"].startswith("Traceback")
        assert "install what provides the module 'library_that_is_not_there'" in cause["fix"]

    def test_for_people(self, environment):
        shown = environment.tract("plugins")
        assert not environment.run("-m", "tract_core", "plugins").stderr  # the listing says all of it
        assert "broken-import tract-broken-import 0.1.0 failed" in " ".join(shown.split())
        assert "cause: ModuleNotFoundError: No module named 'library_that_is_not_there'" in shown
        assert "what to do: install what provides the module 'library_that_is_not_there'" in shown
        verbose = environment.run("-m", "tract_core", "plugins", "--verbose").stdout
        assert "import library_that_is_not_there" in verbose

    def test_blocked_plugins_are_not_even_imported(self, environment):
        blocked = ",".join(f"broken-{name}" for name in BROKEN)
        shown = environment.tract("plugins", "--check", TRACT_PLUGINS_BLOCK=blocked)
        assert shown.count("blocked") == len(BROKEN)
        assert "cause" not in shown

    def test_broken_plugins_disturb_no_command(self, environment):
        assert environment.tract("half-life", "0.5") == "1.0 steps\n"
        listed = environment.run("-m", "tract_core", "list-transforms")
        assert "smooth_outputs" in listed.stdout
        warned = listed.stderr.splitlines()
        assert all(line.startswith("Warning: plugin 'broken-") for line in warned)
        assert len([line for line in warned if "'broken-import'" in line]) == 1
        assert len([line for line in warned if "'broken-hook'" in line and "tract_transforms" in line]) == 1
        assert (
            "Warning: plugin 'broken-import' of tract-broken-import: import of broken_import.plugin: "
            "ModuleNotFoundError: No module named 'library_that_is_not_there'; it is left out, "
            "'tract plugins --check' says what to do"
        ) in warned


class TestOperator:
    @pytest.mark.parametrize("runtime", ["reference", "toy"])
    def test_a_state_goes_on_in_another_process(self, environment, model, runtime):
        x = signal(11)
        np.save(environment.folder / "x.npy", x)
        environment.code(
            """
            import pickle, sys, numpy as np, tract_core as tract
            model, runtime = sys.argv[1:]
            runnable = tract.runtime_for_name(runtime).prepare(tract.onnx().load(model).into_model())
            assert runnable.runtime.name() == runtime
            state, x = runnable.spawn_state(), np.load("x.npy")
            first = state.run([x[:4]])[0].to_numpy()
            np.save("first.npy", first)
            pickle.dump(state.freeze(), open("frozen.pickle", "wb"))
            """,
            model,
            runtime,
        )
        environment.code(
            """
            import pickle, numpy as np
            x, frozen = np.load("x.npy"), pickle.load(open("frozen.pickle", "rb"))
            for _ in range(2):
                state = frozen.unfreeze()
                pieces = [state.run([piece])[0].to_numpy() for piece in (x[4:5], x[5:])]
            np.save("rest.npy", np.concatenate(pieces))
            """
        )
        found = np.concatenate([np.load(environment.folder / f"{part}.npy") for part in ("first", "rest")])
        np.testing.assert_allclose(found, smoothed(x), rtol=1e-5, atol=1e-6)

    def test_its_rule_is_part_of_declutter(self, environment, model):
        found = environment.code(
            """
            import sys, numpy as np, tract_core as tract
            from tract_core.data import Constant
            from tract_core.model.fact_text import parse_typed_fact
            from tract_core.model.typed import TypedModel
            from tract_example.smooth import Smooth
            for decay in (0, 0.5):
                model = TypedModel()
                x = model.add_source("x", parse_typed_fact("T,f32", model.symbols))
                model.set_outputs(model.wire_node("y", Smooth(0, Constant(np.float32([decay])[0])), [x]))
                print([node.op.name for node in model.declutter().live_nodes()])
            """
        )
        assert "Smooth" not in found.splitlines()[0]
        assert "Smooth" in found.splitlines()[1]

    def test_cost_is_told(self, environment, model):
        shown = environment.tract(model, "dump", "--cost")
        assert "6*T" in shown

    def test_the_transform_is_found_by_name(self, environment, model):
        dumped = environment.tract(model, "-t", '{"name": "smooth_outputs", "decay": 0.5}', "dump")
        assert dumped.count("Smooth") == 2
        refused = environment.run(
            "-m", "tract_core", model, "-t", '{"name": "smooth_outputs", "decay": 2}', "dump", status=1
        )
        assert "'decay' is 2, wanted a number from 0 to 1" in refused.stderr

    def test_the_command_runs_it_on_the_toy_runtime(self, environment, model):
        environment.tract(model, "--set", "T=5", "-r", "toy", "run", "--allow-random-input")


BROKEN_RUNTIMES = {
    "broken-import": "OSError: libdevice.so.7: undefined symbol",
    "broken-construction": "MemoryError: no room for a device",
    "broken-question": "ZeroDivisionError: devices per rack",
    "broken-prepare": "TypeError: 'TypedModel' object is not subscriptable",
    "broken-run": "RuntimeError: the device fell off the bus",
    "broken-lies": "ValueError: it returned 3 outputs, the model has 1",
    "absent": "no device of this kind is plugged in",
}


def test_a_broken_runtime_is_an_error_of_ours_and_the_others_work(environment, model):
    found = environment.code(
        """
        import json, sys, numpy as np, tract_core as tract
        from tract_core.plugins import default_registry
        path, *names = sys.argv[1:]
        x, told = np.ones((2, 3), np.float32), {}
        for name in [*names, "toy", "reference", "default"]:
            try:
                runnable = tract.runtime_for_name(name).prepare(tract.onnx().load(path).into_model())
                told[name] = runnable.run([x])[0].to_numpy().tolist()
            except tract.TractError as error:
                told[name] = str(error)
        told["failures"] = [
            failure.doing for record in default_registry().plugins() for failure in record.failures
            if record.name == "broken-runtime"
        ]
        print(json.dumps(told))
        """,
        model,
        *BROKEN_RUNTIMES,
    )
    told = json.loads(found)
    for name, cause in BROKEN_RUNTIMES.items():
        assert cause in told[name], name
        assert name == "absent" or "of tract-broken-runtime" in told[name], told[name]
    for name in ("toy", "reference", "default"):
        np.testing.assert_allclose(told[name], smoothed(np.ones((2, 3))), rtol=1e-5)
    assert len(told["failures"]) == 6


def test_a_broken_transform_is_an_error_of_ours(environment, model):
    refused = environment.run("-m", "tract_core", model, "-t", "broken", "dump", status=1)
    assert "apply of transform 'broken' of tract-broken-runtime failed: IndexError: no such node" in refused.stderr


LINES = """\
# distances
input x: B,3
input y: B,3,f32
d = sub x y
s = square d
output s
"""


class TestFormat:
    """A format that a plugin brings whole."""

    def test_it_is_read_and_run(self, environment):
        found = environment.code(
            f"""
            import numpy as np, tract_core as tract
            open("m.lines", "w").write({LINES!r})
            x, y = np.float32([[1, 2, 3]]), np.float32([[0, 4, 3]])
            for model in (tract.load("m.lines"), tract.lines().load("m.lines"), tract.Lines().loads({LINES!r})):
                print(model.into_runnable().run([x, y])[0].to_numpy().tolist())
            typeless = {LINES.replace(",f32", "")!r}
            print(tract.lines().loads(typeless, default_type="f64").output_fact(0).dump(), "lines" in dir(tract))
            """
        )
        assert found.splitlines() == ["[[1.0, 4.0, 0.0]]"] * 3 + ["B,3,f64 True"]

    def test_it_is_written_and_read_again(self, environment):
        (environment.folder / "a.lines").write_text(LINES)
        environment.tract("a.lines", "save", "b.lines", "--lines-comment", "as read")
        written = (environment.folder / "b.lines").read_text()
        assert written == LINES.replace("# distances", "# as read").replace("B,3\n", "B,3,f32\n")
        environment.tract("b.lines", "save", "c.txt", "--as", "lines", "--lines-comment", "as read")
        assert (environment.folder / "c.txt").read_text() == written

    def test_flags_with_values(self, environment):
        (environment.folder / "a.lines").write_text(LINES.replace("y: B,3,f32", "y: B,3"))
        shown = environment.tract("a.lines", "--lines-default-type", "f16", "-s")
        assert "output 0: s  B,3,f16" in shown
        assert "--lines-default-type TYPE" in environment.tract("--help")
        assert "--lines-comment TEXT" in environment.tract("save", "--help")

    def test_what_it_cannot_say_is_refused_and_nothing_is_lost(self, environment, model):
        (environment.folder / "kept.lines").write_text("as it was")
        refused = environment.run("-m", "tract_core", model, "save", "kept.lines", status=1).stderr
        assert "(Smooth): the format has no word for it" in refused
        assert (environment.folder / "kept.lines").read_text() == "as it was"
        for file, arguments, problem in (
            ("kept.mlir", (), "no installed format writes files named *.mlir; installed: crvo (.crvo), lines"),
            ("kept.onnx", (), "Smooth has no words in version 21 of ONNX's operators"),
            ("x.lines", ("--as", "onnx"), "Smooth has no words in version 21 of ONNX's operators"),
            ("x.lines", ("--as", "caffe"), "format 'caffe' is not installed"),
        ):
            refused = environment.run("-m", "tract_core", model, "save", file, *arguments, status=1).stderr
            assert problem in refused

    def test_the_doctor_lists_every_line_that_is_wrong(self, environment):
        (environment.folder / "bad.lines").write_text("input x: 3\ny = sqare x\nfoo bar\n")
        found = json.loads(environment.tract("bad.lines", "doctor", "--json", status=1))
        assert [(one["problem"], one["places"]) for one in found["findings"]] == [
            ("there is no operator 'sqare'", ["bad.lines: line 2"]),
            ("'foo bar' is no line of the format", ["bad.lines: line 3"]),
        ]


class TestStage:
    """A transform with a stage of the command, and a report."""

    DIGITS = EXAMPLES.parent / "digits" / "digits.onnx"

    def test_its_flag_turns_it_on(self, environment):
        for flags, fewest, most in (((), 100, 100_000), (("--palette", "3"), 2, 8)):
            environment.tract(self.DIGITS, *flags, "--pass", "palette", "dump", "-q")
            found = environment.code(
                """
                import sys, numpy as np
                from tract_core.cli.frame import app
                from tract_core.cli.pipeline import Pipeline
                from tract_core.cli.global_flags import GlobalFlags
                staged = {"palette": int(sys.argv[3])} if len(sys.argv) > 3 else {}
                flags = GlobalFlags(model=sys.argv[1], staged=staged)
                model = Pipeline(flags, lambda text: None, lambda model: None).at("palette")
                weights = [n.op.value.array for n in model.live_nodes() if n.op.name == "Const"]
                print(max(len(np.unique(w)) for w in weights if w.size >= 16))
                """,
                self.DIGITS,
                *flags,
            )
            assert fewest <= int(found) <= most

    def test_it_is_listed_and_its_values_are_checked(self, environment):
        assert "set-declutter, nnef-cycle, palette," in " ".join(environment.tract("--help").split())
        refused = environment.run("-m", "tract_core", self.DIGITS, "--palette", "9", "-s", status=1)
        assert "'bits' is 9, wanted 1 to 8" in refused.stderr
        refused = environment.run("-m", "tract_core", self.DIGITS, "--palette", "few", "-s", status=2)
        assert "Invalid value for '--palette'" in refused.stderr

    def test_the_doctor_tells_what_it_would_do(self, environment):
        found = json.loads(environment.tract(self.DIGITS, "--palette", "1", "doctor", "--json"))
        remarks = [one for one in found["findings"] if one["kind"] == "palette"]
        assert len(remarks) > 3
        assert all(one["severity"] == "remark" and "with 1 bits" in one["problem"] for one in remarks)
        found = json.loads(environment.tract(self.DIGITS, "-t", "palette(bits=8)", "doctor", "--json"))
        assert not [one for one in found["findings"] if one["kind"] == "palette"]


@pytest.fixture(scope="module")
def two_products(environment: Environment) -> Path:
    """x: B,64,f32 -> relu(x @ v) @ w, where v has 64 rows and w 96."""
    random = np.random.default_rng(3)
    v, w = (random.normal(size=size).astype(np.float32) for size in ((64, 96), (96, 10)))
    v[:, :3], v[:32, 3], v[0, 4] = 0, -7, 1000  # blocks of zeros, of one number, and with one that stands out
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 10])
    weights = [numpy_helper.from_array(v, "v"), numpy_helper.from_array(w, "w")]
    path = environment.folder / "products.onnx"
    graph = helper.make_graph(nodes, "products", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    np.savez(environment.folder / "products.npz", v=v, w=w, x=random.normal(size=(5, 64)).astype(np.float32))
    return path


class TestPackedWeights:
    """A storage format of weights, with the operator that unpacks them, and the transform that packs."""

    PACK = dedent(
        """
        import pickle, sys, numpy as np, tract_core as tract
        from dataclasses import replace
        from tract_core.data import Constant
        from tract_core.model.same import fingerprint, same_model

        def load(*transforms):
            model = tract.load(sys.argv[1])
            for one in transforms:
                model.transform(one)
            return model

        PACK = "pack_q4(elements=960)"
        model = load(PACK)
        unpacking = [node for node in model.typed.live_nodes() if node.op.unpacks]
        """
    )

    @pytest.mark.parametrize("runtime", ["reference", "fuse"])
    def test_runtimes_that_know_nothing_of_it_compute_with_what_the_blocks_stand_for(
        self, environment, two_products, runtime
    ):
        environment.code(
            self.PACK
            + dedent(
                """
                np.savez("packed.npz", **{node.name: model.typed.constant(node.inputs[0]) for node in unpacking})
                x = np.load("products.npz")["x"]
                np.save("y.npy", tract.runtime_for_name(sys.argv[2]).prepare(model).run([x])[0].to_numpy())
                """
            ),
            two_products,
            runtime,
        )
        given, packed = (np.load(environment.folder / f"{name}.npz") for name in ("products", "packed"))
        v, w = (_numbers_of_blocks(packed[f"{name}.unpacked"]).T for name in "vw")
        for found, wanted in ((v, given["v"]), (w, given["w"])):
            most = np.abs(wanted.T.reshape(-1, 32)).max(-1) / 8  # one step; the scale itself is rounded to f16
            error = np.abs(found - wanted).T.reshape(-1, 32).max(-1)
            assert (error <= most * 1.01).all()
        expected = np.maximum(given["x"].astype(np.float64) @ v, 0) @ w
        np.testing.assert_allclose(np.load(environment.folder / "y.npy"), expected, rtol=1e-4, atol=1e-3)

    def test_nothing_unpacks_them_before_the_model_runs(self, environment, two_products):
        found = environment.code(
            self.PACK
            + dedent(
                """
                for one in (load(), model, load(PACK, "f32_to_f16")):
                    nodes = one.typed.declutter().live_nodes()
                    held = [node.op.value.array for node in nodes if node.op.name == "Const"]
                    print(sum(array.nbytes for array in held if array.size > 1))
                """
            ),
            two_products,
        )
        numbers = 64 * 96 + 96 * 10
        assert [int(line) for line in found.splitlines()] == [4 * numbers, numbers * 18 // 32, numbers * 18 // 32]

    def test_they_are_compared_and_sent_as_other_constants_are(self, environment, two_products):
        found = environment.code(
            self.PACK
            + dedent(
                """
                again = pickle.loads(pickle.dumps(model.typed))
                other = model.typed.clone()
                node = other.nodes[unpacking[0].inputs[0].node]
                node.op = replace(node.op, value=Constant(node.op.value.array ^ 1))
                print(same_model(model.typed, again), fingerprint(again) == fingerprint(model.typed))
                print(same_model(model.typed, other), fingerprint(other) == fingerprint(model.typed))
                """
            ),
            two_products,
        )
        assert found.splitlines() == ["True True", "False False"]

    def test_the_command_knows_the_transform(self, environment, two_products):
        shown = environment.tract(two_products, "-t", "pack_q4(elements=960)", "--set", "B=2", "dump", "--cost")
        assert "UnpackQ4" in shown
        assert "64,96,f32" not in shown
        refused = environment.run("-m", "tract_core", two_products, "-t", "pack_q4(elements=0)", "dump", status=1)
        assert "'elements' is 0, wanted 1 or more" in refused.stderr

    @pytest.mark.parametrize("runtime", ["reference", "fuse"])
    def test_the_kit_checks_it_on_any_runtime(self, environment, runtime):
        found = environment.run(*TestConformance.KIT[:-1], runtime, "-k", "UnpackQ4").stdout
        assert "35 passed" in found


def _numbers_of_blocks(packed: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What blocks of Q4_0 stand for, by a structured type, in float64."""
    one = np.dtype([("scale", "<f2"), ("codes", "u1", 16)])
    blocks = np.ascontiguousarray(packed).view(one)[..., 0]
    low_first = np.stack([blocks["codes"] % 16, blocks["codes"] // 16], axis=-2).astype(np.float64)
    numbers = (low_first - 8) * blocks["scale"].astype(np.float64)[..., None, None]
    return numbers.reshape(*packed.shape[:-2], -1)


class TestConformance:
    """The kit, as the author of the runtime ``toy`` runs it."""

    KIT = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "tract_core.testing", "--tract-runtime", "toy")
    FEW = ("-k", "Smooth or cosh or Sigmoid or gaps or contract")

    def test_it_passes_with_its_known_gaps(self, environment):
        found = environment.run(*self.KIT, *self.FEW).stdout
        assert "xfailed" in found
        assert "failed" not in found.replace("xfailed", "")

    def test_the_runtime_that_fuses_passes(self, environment):
        few = ("-k", "contract or Exp or Tanh or Abs or Gelu or Scan or gaps")
        found = environment.run(*self.KIT[:-1], "fuse", *few).stdout
        assert " passed" in found
        assert "failed" not in found

    @pytest.mark.parametrize(
        ("gap", "message"),
        [("Exp-*", "[XPASS(strict)] for a test"), ("Nothing-*", "is about no case")],
        ids=["closed", "about nothing"],
    )
    def test_a_gap_that_is_none_is_a_failure(self, environment, gap, message):
        text = f"""
            from tract_core.plugins import Registry, Rows, hookimpl
            from tract_core.testing.gaps import KNOWN_GAPS, Gap
            from tract_example import plugin
            from tract_example.runtime import ToyRuntime

            ROWS = Rows()
            ROWS.add(KNOWN_GAPS, "slow", [Gap({gap!r}, "for a test")])

            class SlowRuntime(ToyRuntime):
                name = "slow"

            class Plugin:
                @hookimpl
                def tract_api_version(self):
                    return "1.0"

                @hookimpl
                def tract_runtimes(self):
                    return {{"slow": "my_registry:SlowRuntime"}}

                @hookimpl
                def tract_rows(self):
                    return {{"known_gaps": ["my_registry"]}}

            def registry():
                return Registry({{"mine": Plugin()}}, discover=False)
        """
        (environment.folder / "my_registry.py").write_text(dedent(text))
        kit = (*self.KIT[:-1], "slow", "--tract-registry", "my_registry:registry", "-k", "Exp or gaps")
        found = environment.run(*kit, status=1, PYTHONPATH=str(environment.folder)).stdout
        assert message in found

    def test_a_plugin_that_cannot_be_loaded_fails_with_the_traceback(self, environment):
        found = environment.run(*self.KIT, "-k", "test_plugin", status=1).stdout
        for name in ("core", "onnx", "example"):
            assert f"FAILED conformance/test_plugins.py::test_plugin[{name}]" not in found
        for name in BROKEN:
            assert f"FAILED conformance/test_plugins.py::test_plugin[broken-{name}]" in found
        assert "what to do: install what provides the module 'library_that_is_not_there'" in found
        assert "    import library_that_is_not_there" in found

    def test_a_plain_option_of_another_plugin_is_its_own(self, environment):
        (environment.folder / "clash.py").write_text(
            "def pytest_addoption(parser):\n    parser.addoption('--runtime', default=None)\n"
        )
        kit = (self.KIT[0], self.KIT[1], "-p", "clash", *self.KIT[2:], "-k", "Sigmoid-extremes", "--runtime", "docker")
        assert "7 passed" in environment.run(*kit, PYTHONPATH=str(environment.folder)).stdout

    @pytest.mark.parametrize(
        ("flags", "message"),
        [
            (
                ("--tract-runtime", "tpu"),
                "--tract-runtime: runtime 'tpu' is not installed; installed runtimes: default, ",
            ),
            (("--tract-runtime", "absent"), "--tract-runtime: runtime 'absent' does not work here: no device of this"),
            (("--tract-registry", "nope"), "--tract-registry: 'nope' leads nowhere, wanted a text like 'module:attri"),
            (("--tract-registry", "no_such:one"), "--tract-registry no_such:one: No module named 'no_such'"),
            (("--tract-registry", "builtins:dict"), "--tract-registry builtins:dict returned a dict, wanted a tract_c"),
        ],
    )
    def test_what_cannot_be_chosen_is_told_in_one_line(self, environment, flags, message):
        found = environment.run(*self.KIT[:-2], *flags, status=4, PYTHONWARNINGS="ignore")
        assert found.stderr.startswith(f"ERROR: {message}")
        assert (found.stderr + found.stdout).strip().count("\n") == 0
