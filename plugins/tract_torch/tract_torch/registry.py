"""What whoever brings rows of the table ``aten`` imports: see `tract_torch.wiring.rows`."""

from tract_torch.wiring.rows import ATEN, AtenFn, aten

__all__ = ["ATEN", "AtenFn", "aten"]
