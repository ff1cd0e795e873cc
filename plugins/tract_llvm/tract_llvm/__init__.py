"""What compilers over LLVM share: a language for kernels, functions with their errors, object code and its cache."""
