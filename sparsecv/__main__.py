"""The command line as ``python -m sparsecv``."""

from .cli.main import main

main()
