"""Who runs a network: this project, PyTorch's compiler, ONNX Runtime on its providers for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tract_cuda import arrays

from device_run import networks
from networks.builder import Network

Run = Callable[[], list[Any]]
"""One turn, with all that it is waited for. Its outputs are read by `numpy.asarray`, or ``cpu`` of PyTorch."""

Load = Callable[[Network, str], Run]
"""From a network and a precision, to what runs it. Raises ImportError where it is not installed."""


def cuda_from_the_host(one: Network, precision: str) -> Run:
    """Arrays of NumPy in and out: copies count."""
    runnable, given = networks.prepared(one, "cuda", precision)
    state = runnable.spawn_state()
    return lambda: [tensor.view() for tensor in state.run(given)]


def cuda_on_the_device(one: Network, precision: str) -> Run:
    """Arrays on the device in and out, as PyTorch has them. Raises ValueError where a node is left to the host."""
    runnable, given = networks.prepared(one, "cuda", precision)
    if runnable.plan.hosted():
        raise ValueError("a node is left to the host, so that nothing may stay on the device")
    state, there = runnable.spawn_state(), [arrays.put(array) for array in given]
    out = [arrays.empty(np.shape(tensor), tensor.view().dtype) for tensor in runnable.run(given)]
    return lambda: state.run(there, out=out)


def torch_compiled(mode: str) -> Load:
    """PyTorch, with inputs that are on the device, channels last."""

    def load(one: Network, precision: str) -> Run:
        import torch

        from device_run.torch_network import TorchNetwork

        tf32 = precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch._dynamo.reset()
        dtype = torch.float16 if precision == "f16" else torch.float32
        torch.set_default_dtype(dtype)
        place = "cuda" if torch.cuda.is_available() else "cpu"
        module = TorchNetwork(one.model, place, dtype).eval()
        given = [_torch_input(torch.from_numpy(np.array(array)), place, dtype) for array in one.inputs.values()]
        compiled = torch.compile(module, mode=mode, fullgraph=True)
        wait = torch.cuda.synchronize if place == "cuda" else lambda: None

        def run() -> list[Any]:
            with torch.inference_mode():
                found = list(compiled(*given))
            wait()
            return found

        return run

    return load


def _torch_input(array: Any, place: str, dtype: Any) -> Any:
    import torch

    there = array.to(place, dtype) if array.is_floating_point() else array.to(place)
    return there.to(memory_format=torch.channels_last) if there.dim() == 4 else there


def onnxruntime_on(provider: str, **options: Any) -> Load:
    """ONNX Runtime, with inputs and outputs that are on the device."""

    def load(one: Network, precision: str) -> Run:
        import onnxruntime

        if provider not in onnxruntime.get_available_providers():
            raise ImportError(f"this ONNX Runtime has no {provider}")
        given = {"use_tf32": int(precision == "tf32")} if provider == "CUDAExecutionProvider" else {}
        if precision == "f16" and provider == "CUDAExecutionProvider":
            raise NotImplementedError("its network would have to be converted first")
        given |= {"trt_fp16_enable": True} if precision == "f16" else {}
        session = onnxruntime.InferenceSession(
            one.model.SerializeToString(), providers=[(provider, {**options, **given})]
        )
        if session.get_providers()[0] != provider:
            raise ImportError(f"{provider} cannot be loaded here")
        binding = session.io_binding()
        for name, array in one.inputs.items():
            binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", 0))
        for output in session.get_outputs():
            binding.bind_output(output.name, "cuda")

        def run() -> list[Any]:
            session.run_with_iobinding(binding)
            binding.synchronize_outputs()
            return binding.get_outputs()

        return run

    return load


ENGINES: dict[str, Load] = {
    "cuda": cuda_from_the_host,
    "cuda, arrays on the device": cuda_on_the_device,
    "torch.compile, reduce-overhead": torch_compiled("reduce-overhead"),
    "ORT-CUDA": onnxruntime_on("CUDAExecutionProvider"),
    "TensorRT": onnxruntime_on("TensorrtExecutionProvider"),
    "torch.compile, max-autotune": torch_compiled("max-autotune"),
}
"""By name."""

SLOW = ("torch.compile, max-autotune",)
"""Those that take minutes to compile a network."""


def as_arrays(outputs: list[Any]) -> list[np.ndarray]:
    """What a run gave, on the host."""
    return [_as_array(one) for one in outputs]


def _as_array(one: Any) -> np.ndarray:
    if hasattr(one, "detach"):
        return one.detach().cpu().numpy()
    return one.numpy() if hasattr(one, "numpy") and not isinstance(one, np.ndarray) else np.asarray(one)
