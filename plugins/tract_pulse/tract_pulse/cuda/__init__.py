"""How GPUs compute the operators of streams: rows for the tables of tract-cuda."""
