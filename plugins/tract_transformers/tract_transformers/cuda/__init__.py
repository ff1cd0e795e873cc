"""How the operators of this distribution are computed by tract-cuda."""
