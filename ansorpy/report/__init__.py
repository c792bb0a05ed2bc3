"""Results for users: verification, comparisons with other engines, tables."""
