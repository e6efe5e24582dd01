"""Vector loops in hand-written LLVM IR, each beside its plain twin."""
