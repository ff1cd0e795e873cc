"""TensorFlow frontend: files of TFLite, SavedModels and frozen graphs."""
