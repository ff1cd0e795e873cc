"""PTX executed on the host, with every access checked: kernels are proved right without a GPU.

y = run(ptx, grid, [x, np.empty_like(x), n])[1]
"""

from tract_cuda.testing.emulator.emulator import Emulator
from tract_cuda.testing.emulator.errors import EmulationError, UnknownPtx
from tract_cuda.testing.emulator.launch import Range
from tract_cuda.testing.emulator.run import aligned, run

__all__ = ["EmulationError", "Emulator", "Range", "UnknownPtx", "aligned", "run"]
