"""The functions of CUDA's driver that are called, with the types of their arguments; all return a result code.

Names are those of the ABI: https://docs.nvidia.com/cuda/cuda-driver-api
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Mapping
from typing import Any, Final

P: Final = c.c_void_p
U: Final = c.c_uint
S: Final = c.c_size_t
I: Final = c.c_int
D: Final = c.c_uint64
"""An address of the device."""

PROTOTYPES: Final[Mapping[str, tuple[Any, ...]]] = {
    "cuInit": (U,),
    "cuDriverGetVersion": (P,),
    "cuGetErrorName": (I, P),
    "cuGetErrorString": (I, P),
    "cuDeviceGetCount": (P,),
    "cuDeviceGet": (P, I),
    "cuDeviceGetName": (P, I, I),
    "cuDeviceGetAttribute": (P, I, I),
    "cuDeviceTotalMem_v2": (P, I),
    "cuDevicePrimaryCtxRetain": (P, I),
    "cuDevicePrimaryCtxRelease_v2": (I,),
    "cuCtxSetCurrent": (P,),
    "cuCtxPushCurrent_v2": (P,),
    "cuCtxPopCurrent_v2": (P,),
    "cuPointerGetAttribute": (P, I, D),
    "cuMemGetInfo_v2": (P, P),
    "cuMemAlloc_v2": (P, S),
    "cuMemFree_v2": (D,),
    "cuMemHostAlloc": (P, S, U),
    "cuMemFreeHost": (P,),
    "cuMemcpyHtoD_v2": (D, P, S),
    "cuMemcpyDtoH_v2": (P, D, S),
    "cuMemcpyHtoDAsync_v2": (D, P, S, P),
    "cuMemcpyDtoHAsync_v2": (P, D, S, P),
    "cuMemcpyDtoDAsync_v2": (D, D, S, P),
    "cuMemsetD8Async": (D, c.c_ubyte, S, P),
    "cuModuleLoadDataEx": (P, P, U, P, P),
    "cuModuleUnload": (P,),
    "cuModuleGetFunction": (P, P, c.c_char_p),
    "cuFuncSetAttribute": (P, I, I),
    "cuFuncGetAttribute": (P, I, P),
    "cuLaunchKernel": (P, U, U, U, U, U, U, U, P, P, P),
    "cuStreamCreate": (P, U),
    "cuStreamDestroy_v2": (P,),
    "cuStreamSynchronize": (P,),
    "cuStreamBeginCapture_v2": (P, I),
    "cuStreamEndCapture": (P, P),
    "cuGraphInstantiateWithFlags": (P, P, c.c_ulonglong),
    "cuGraphExecUpdate_v2": (P, P, P),
    "cuGraphLaunch": (P, P),
    "cuGraphExecDestroy": (P,),
    "cuGraphDestroy": (P,),
    "cuEventCreate": (P, U),
    "cuEventDestroy_v2": (P,),
    "cuEventRecordWithFlags": (P, P, U),
    "cuEventSynchronize": (P,),
    "cuEventElapsedTime": (P, P, P),
    "cuStreamWaitEvent": (P, P, U),
}
