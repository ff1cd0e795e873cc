"""A memory for each agent: what a recurrent policy puts out is put in at the next step."""
