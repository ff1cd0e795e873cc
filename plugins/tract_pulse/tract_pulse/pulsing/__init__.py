"""How a model over a whole signal becomes one over pulses: node by node, by the rows of the table `pulse`."""
