"""Loop programs to machine code: passes shared by the back ends, and one folder a back end."""
