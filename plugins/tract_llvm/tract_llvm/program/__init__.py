"""Tensors in memory, and loops over them: what programs of compilers over LLVM work on."""
