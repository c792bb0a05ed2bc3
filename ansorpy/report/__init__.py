"""What people read: verification, comparisons with other engines, tables."""
