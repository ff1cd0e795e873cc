"""How each family of operators streams: the rows of the table `pulse`."""
