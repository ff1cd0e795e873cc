"""From the text of a module to code that runs: LLVM's optimiser, the cache of object code, the loader, the executor."""
