"""Models that are served: how they are made ready, what they say of themselves, how requests reach them."""
