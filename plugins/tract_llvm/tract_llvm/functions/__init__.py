"""Functions of real numbers, ``(x: Value) -> Value``, for f32 and f64, for numbers and vectors.

They have no branches but where a comment says why, call nothing, and gather nothing from memory. All are right for
subnormal numbers, signed zeros, infinities and not-a-number. Errors are given in units of the last place of the true
result, and are those of the worst number and instruction set: of all f32 numbers (``tools/measure_errors.py``), and of
samples of f64 and of pairs of numbers.

Polynomials are in ``coefficients.py``, which ``tools/fit_functions.py`` writes.
"""
