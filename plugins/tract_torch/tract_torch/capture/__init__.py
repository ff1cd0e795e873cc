"""What asks `torch.export` for a program, and what stands in for PyTorch while it is asked."""
