"""The kernels: for each family of operators, the plan of its loops, and the code that the plan becomes."""
