"""What is kept on disk between processes: where, under which keys, and what leaves it when there is too much."""
