"""How compilers over LLVM compute the operators that only TFLite has."""
