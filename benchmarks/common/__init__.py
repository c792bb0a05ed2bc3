"""Shared by the benchmarks: command lines, cells of tables, places in pages, machine limits."""
