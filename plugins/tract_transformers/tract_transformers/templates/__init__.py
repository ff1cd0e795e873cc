"""Chat templates: what the turns of a conversation look like to a model."""
