"""Models that write down what is said, as Whisper."""
