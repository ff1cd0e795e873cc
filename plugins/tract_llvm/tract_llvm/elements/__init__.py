"""How one element of an operator's output is computed: what every compiler over LLVM fuses."""
