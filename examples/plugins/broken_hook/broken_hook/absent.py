"""A runtime that says why it is of no use here."""


class AbsentRuntime:
    """Offered as ``absent``."""

    name = "absent"

    def why_unusable(self):
        """One sentence for the user."""
        return "no device of this kind is plugged in"

    def prepare(self, model):
        """Never called."""
        raise AssertionError
