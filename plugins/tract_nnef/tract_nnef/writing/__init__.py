"""Models become documents: every node a statement, every large constant a tensor beside the text."""
