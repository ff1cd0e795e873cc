"""An example of a transform for tract. `tract_palette.plugin` says what it brings, and where each thing is."""
