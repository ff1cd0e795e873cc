"""How operators of PyTorch become core operators, one module per family."""
