"""Sound: files of waves, other rates, and spectra."""
