"""The compiling CPU runtime of tract: a model becomes machine code, through LLVM."""
