"""Which columns count in which rows, of tensors with two axes of time: as much of a mask as its operators tell."""
