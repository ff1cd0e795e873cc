"""What kernels for GPUs are written in: that of `tract_llvm.language`, and what threads of a block do together."""
