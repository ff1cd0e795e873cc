"""The public names, and where they are from."""

from tract_view.in_memory import page_of as page_of
