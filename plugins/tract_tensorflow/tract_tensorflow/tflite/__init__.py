"""Files of TFLite."""
