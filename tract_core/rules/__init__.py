"""Declutter: the rules that bring a model to its normal form, one module per family of operators."""

from tract_core.model.declutter import declutter, declutter_rules, declutter_with_report

__all__ = ["declutter", "declutter_rules", "declutter_with_report"]
