"""A driver that is older than the library."""

raise OSError("libdevice.so.7: undefined symbol")
