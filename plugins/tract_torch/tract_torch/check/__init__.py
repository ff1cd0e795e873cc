"""Is what was exported what the module computes? Compared in process, and down to the first module that differs."""
