"""Networks as exporters write them, stored without their weights."""
