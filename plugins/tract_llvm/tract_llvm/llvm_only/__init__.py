"""Operators that only models have that the rules of `tract_llvm.native_form` made."""
