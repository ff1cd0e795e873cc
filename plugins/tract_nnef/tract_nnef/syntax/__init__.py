"""The text of NNEF documents: what they say as data, how they are read, and how they are printed."""
