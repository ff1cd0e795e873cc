"""Folders of Hugging Face, ``config.json`` beside ``*.safetensors``, as what files of GGUF hold."""
