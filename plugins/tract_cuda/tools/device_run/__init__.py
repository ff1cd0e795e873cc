"""The parts of `first_device_run.py`, a module each."""
