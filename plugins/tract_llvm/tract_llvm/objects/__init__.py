"""From the text of a module to code in memory: LLVM's optimiser, the cache of object code, the loader."""
