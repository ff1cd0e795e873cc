"""Models on disk: which there are, what is said of them, which are ready."""
