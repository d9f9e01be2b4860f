"""`python -m hearsay`: the command line."""

from hearsay.cli import main

main()
