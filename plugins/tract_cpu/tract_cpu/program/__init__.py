"""What a program is: steps, where tensors lie, how it is written as text and looked through for faults."""
