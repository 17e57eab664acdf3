"""``python -m sparsecv``."""

from .cli import main

main()
