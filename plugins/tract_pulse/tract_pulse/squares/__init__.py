"""What operators make of tensors with two axes of time: which elements count, and how a window of them is computed."""
