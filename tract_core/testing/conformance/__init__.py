"""The conformance kit: ``pytest --pyargs tract_core.testing --tract-runtime NAME`` runs it on an installed runtime."""
