"""Which lines could be wrong without a test that fails? `python -m tests.mutants` changes one token at a time."""
