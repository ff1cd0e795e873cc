"""What can be asked for, and what is said where it is not there."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import mlx.core as mx
import numpy as np
import pytest
from on_mlx import CPU, model_of, parsed, plan_of
from tract_metal.device import MetalDevice, why_unusable
from tract_metal.functions import MOST_SIZES
from tract_metal.plan import MetalPlan
from tract_metal.recording import Recording

import tract_core as tract
from tract_core.errors import InputError, PluginError, RunError
from tract_core.ops.elementwise import Exp
from tract_core.runtime.lookup import find_runtime

NO_GPU = pytest.mark.skipif(mx.metal.is_available(), reason="there is a GPU of Apple")


@NO_GPU
def test_without_a_gpu_nothing_falls_back() -> None:
    wanted = (
        r"runtime 'metal' does not work here: MLX finds no GPU of Apple here; metal\(device='cpu'\) computes on the"
    )
    with pytest.raises(PluginError, match=wanted):
        find_runtime("metal")
    with pytest.raises(PluginError, match="MLX finds no GPU of Apple"):
        find_runtime("gpu")


def test_without_mlx_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlx.core", None)
    assert "'pip install mlx[cpu]' on Linux" in (why_unusable("cpu") or "")


def test_a_device_that_is_none() -> None:
    with pytest.raises(InputError, match="device is 'tpu', wanted one of gpu, cpu"):
        find_runtime('metal(device="tpu")')


def test_it_is_never_the_default() -> None:
    assert tract.runtime_for_name("default").name != "metal"


def test_without_a_compiler_nothing_is_compiled() -> None:
    model = model_of(Exp(), "3,f32")
    (found,) = MetalPlan(model, MetalDevice("cpu", compiles=False)).run([np.zeros(3, "f4")])
    assert (found == 1).all()


def test_what_goes_wrong_in_mlx_is_an_error_of_ours() -> None:
    with pytest.raises(RunError, match=r"MLX says: .*matmul"), CPU.computing():
        mx.matmul(mx.zeros((2, 3)), mx.zeros((2, 3)))


def test_functions_are_kept_for_so_many_sizes() -> None:
    model = model_of(Exp(), "N,f32")
    plan = plan_of(model)
    state = plan.spawn()
    for size in range(2 * MOST_SIZES):
        (found,) = state.run([np.zeros(size, "f4")])
        assert found.shape == (size,)
    assert len(plan.functions) == MOST_SIZES


def test_states_share_functions() -> None:
    plan = plan_of(model_of(Exp(), "N,f32"))
    with patch.object(Recording, "add", autospec=True, side_effect=Recording.add) as recorded:
        for _ in range(3):
            plan.run([np.zeros(4, "f4")])
    assert recorded.call_count == 1


def test_threads_share_functions() -> None:
    plan, wanted = plan_of(model_of(Exp(), "N,f32")), np.exp(np.linspace(-1, 1, 100, dtype="f4"))
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(plan.run, [np.linspace(-1, 1, 100, dtype="f4")]) for _ in range(40)]
        assert all(np.allclose(one.result()[0], wanted, rtol=1e-6) for one in runs)


def test_states_share_weights() -> None:
    model = parsed("(float[B,2] x) => (float[B,3] y) <float[2,3] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }")
    plan = plan_of(model)
    states = [plan.spawn() for _ in range(3)]
    for rows, state in enumerate(states):
        state.run([np.ones((rows, 2), "f4")])
    assert len(plan._on_device) == 1


def test_a_node_of_the_host_lies_between_two_functions() -> None:
    graph = "(float[B,2] x) => (float[B,2] y) { r = Relu(x) n = RandomNormalLike(r) z = Mul(n, r) y = Sub(z, z) }"
    plan = plan_of(parsed(graph), all_of_it=False)
    assert list(plan.hosted.values()) == ["MLX has nothing for this operator yet"]
    (found,) = plan.run([np.ones((3, 2), "f4")])
    assert (found == 0).all()
    told = str(plan.explain())
    assert "MLX has nothing for this operator yet" in told
    assert "mlx:cpu" in told


def test_what_waits_for_a_node_of_the_host_comes_behind_all_others() -> None:
    nodes = "n = NonZero(x) a = Relu(x) b = Neg(a) c = Cast<to=1>(n) d = Abs(b) e = Neg(c)"
    plan = plan_of(parsed(f"(float[S] x) => (float[S] d, float[1,N] e) {{ {nodes} }}"), all_of_it=False)
    assert [type(piece).__name__ for piece in plan.pieces] == ["Segment", "Hosted", "Segment"]
    d, e = plan.run([np.array([0, 1, 0, 2], "f4")])
    np.testing.assert_array_equal(d, [0, 1, 0, 2])
    np.testing.assert_array_equal(e, [[-1, -3]])


def test_memory_is_told_before_anything_is_computed() -> None:
    model = model_of(Exp(), "N,f32")
    model.limits = model.limits.__class__(max_run_bytes=1 << 20)
    state = plan_of(model).spawn()
    state.run([np.zeros(1000, "f4")])
    with pytest.raises(RunError, match=r"bytes at the same time, 1048576 are allowed"):
        state.run([np.zeros(1 << 19, "f4")])


def test_many_nodes_of_the_host_lie_between_few_functions() -> None:
    """They wait for nothing of each other: one function before all of them, one behind."""
    names = [f"{number}" for number in range(200)]
    nodes = " ".join(f"a{one} = Neg(x) n{one} = RandomNormalLike(a{one}) b{one} = Abs(n{one})" for one in names)
    summed = f"y = Sum({', '.join(f'b{one}' for one in names)})"
    plan = plan_of(parsed(f"(float[2] x) => (float[2] y) {{ {nodes} {summed} }}"), all_of_it=False)
    assert [type(piece).__name__ for piece in plan.pieces] == ["Segment", *["Hosted"] * 200, "Segment"]
