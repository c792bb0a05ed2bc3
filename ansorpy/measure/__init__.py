"""Building, running and timing candidates in workers, and the database that remembers them."""
