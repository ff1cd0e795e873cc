"""What compilers share, for whatever machine: decisions about a program that do not ask what its kernels are."""
