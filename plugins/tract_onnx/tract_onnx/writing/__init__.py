"""From models to ONNX files: `saver` writes them, `graph` goes through the nodes, `ops` has a row for each operator."""
