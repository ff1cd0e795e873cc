"""A runtime for tract that sends chains of element-wise operators through in blocks."""
