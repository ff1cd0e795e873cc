"""The GPU runtime for CUDA: a model becomes PTX, through LLVM."""
