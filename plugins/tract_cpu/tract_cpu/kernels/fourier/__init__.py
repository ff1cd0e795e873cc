"""The passes of Fourier transforms."""
