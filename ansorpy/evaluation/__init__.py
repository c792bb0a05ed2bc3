"""What users learn of results: verification, comparisons with other engines, tables."""
