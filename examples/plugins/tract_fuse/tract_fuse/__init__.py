"""A runtime for tract that sends groups of element-wise operators through in blocks."""
