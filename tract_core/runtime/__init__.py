"""Run models: the shapes that every runtime has, and the plain NumPy interpreter."""
