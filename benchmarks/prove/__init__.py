"""The proofs of memory safety, measured on whole suites and tested on mutants."""
