"""How NNEF archives spell the operators of this distribution. Imported only where tract-nnef is installed."""
