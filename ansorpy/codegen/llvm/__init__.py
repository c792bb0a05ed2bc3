"""Loop programs to object code through LLVM: emit, build, load."""
