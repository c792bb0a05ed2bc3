"""Print programs and definitions as text, and convert definitions to JSON and back."""
