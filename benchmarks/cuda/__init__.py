"""The measured part on a GPU, as one script that can be stopped and goes on: __main__."""
