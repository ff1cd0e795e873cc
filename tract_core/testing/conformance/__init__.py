"""The conformance kit: ``pytest --pyargs tract_core.testing --runtime NAME`` runs it on an installed runtime."""
