"""The entry functions of a compiled program, as LLVM IR: init, plan and run."""
