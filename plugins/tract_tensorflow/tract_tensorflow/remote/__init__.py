"""Models at addresses that only the file systems of TensorFlow know."""
