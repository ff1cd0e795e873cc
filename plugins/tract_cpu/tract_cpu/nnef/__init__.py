"""What archives of NNEF hold of ours: rows of tables of `tract_nnef`, imported when one of these is asked."""
