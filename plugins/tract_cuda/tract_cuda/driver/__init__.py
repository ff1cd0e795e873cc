"""The driver of CUDA: its functions, errors, memory, streams and graphs. Nothing is opened before it is used."""
