"""The native functions that run programs, and the threads that help."""
