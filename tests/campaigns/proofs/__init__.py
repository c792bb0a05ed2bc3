"""The proofs of memory safety, on whole suites and on mutants."""
