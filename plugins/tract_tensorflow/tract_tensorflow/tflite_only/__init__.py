"""Operators that only files of TFLite have."""
