"""Models compiled ahead of time: one object file, which any language links, and a header of C."""
