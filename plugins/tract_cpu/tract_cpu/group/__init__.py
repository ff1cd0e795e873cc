"""Which nodes one kernel computes, and in which blocks of channels: decided before anything has a place in memory."""
