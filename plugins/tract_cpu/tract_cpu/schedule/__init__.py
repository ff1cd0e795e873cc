"""The steps of a program in order: convolutions joined row by row, loops, and what is done behind all others."""
