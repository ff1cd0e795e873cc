"""Policies in one file each, as ``.crvo`` holds them: a model and what kind it is of."""
