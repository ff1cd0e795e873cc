"""Text from models: loading one with its tokenizer, and the loop that writes."""
