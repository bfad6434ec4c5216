"""The backend cpu: its targets, schedules, lowering to LLVM and machine code, for x86-64."""
