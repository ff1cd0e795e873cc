"""The protocol over HTTP, as an ASGI application."""
