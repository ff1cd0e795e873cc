"""Which nodes one kernel computes, and in which order."""
