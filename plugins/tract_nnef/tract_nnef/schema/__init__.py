"""The registry ``tract_py``: any operator that is a frozen dataclass, spelled from its fields by their type hints.

A file gives data only. Operators are found among the keys of the tables that say how operators run; what a field may
hold is what its type hint says; nothing that a file names is imported.
"""
