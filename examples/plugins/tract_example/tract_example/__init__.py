"""An example of a plugin for tract. `tract_example.plugin` says what it brings, and where each thing is."""
