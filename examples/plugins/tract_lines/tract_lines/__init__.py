"""An example of a model format for tract. `tract_lines.plugin` says what it brings, and where each thing is."""
