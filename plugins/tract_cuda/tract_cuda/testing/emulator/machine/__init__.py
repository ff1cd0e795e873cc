"""What stands between a kernel and the host: memory and its checks, barriers, and the order in which threads go on."""
