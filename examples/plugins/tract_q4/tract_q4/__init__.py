"""An example of packed weights for tract. `tract_q4.plugin` says what it brings, and where each thing is."""
