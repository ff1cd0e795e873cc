"""Several policies in one program: what they are asked, in which order they run, and how long they take."""
