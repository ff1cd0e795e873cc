"""The language that kernels are written in: numbers, vectors, buffers and loops over llvmlite."""
