"""Models of texts, by the OpenAI interface: conversations, texts, vectors, ranks."""
