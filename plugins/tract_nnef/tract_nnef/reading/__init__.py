"""Documents become models: expressions are evaluated, fragments expanded, operators wired."""
