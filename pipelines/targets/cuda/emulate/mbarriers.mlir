// ==== update
// Arrivals come to a barrier, and bytes are announced (or come: fewer than 0).
func.func private @${update}(%barrier: !llvm.ptr, %arrivals: i64, %bytes: i64) {
  %c0 = arith.constant 0 : i64
  %field = arith.constant ${field} : i64
  %count_shift = arith.constant ${count_shift} : i64
  %bytes_shift = arith.constant ${bytes_shift} : i64
  %parity_bit = arith.constant ${parity_bit} : i64
  %state = llvm.load %barrier : !llvm.ptr -> i64
  %missing = arith.andi %state, %field : i64
  %left = arith.subi %missing, %arrivals : i64
  %few = arith.cmpi slt, %left, %c0 : i64
  // Of a phase that has ended too early nothing is known: this one never ends.
  %still = arith.select %few, %field, %left : i64
  %shifted = arith.shli %bytes, %bytes_shift : i64
  %without = arith.subi %state, %missing : i64
  %with = arith.addi %without, %still : i64
  %new = arith.addi %with, %shifted : i64
  %coming = arith.shrsi %new, %bytes_shift : i64
  %both = arith.ori %coming, %still : i64
  %ends = arith.cmpi eq, %both, %c0 : i64
  %count0 = arith.shrui %new, %count_shift : i64
  %count = arith.andi %count0, %field : i64
  %flipped = arith.xori %new, %parity_bit : i64
  %next = arith.ori %flipped, %count : i64
  %after = arith.select %ends, %next, %new : i64
  llvm.store %after, %barrier : i64, !llvm.ptr
  return
}

// ==== has_ended
// Whether the phase of a parity has ended: the one that is on now is of the other.
func.func private @${has_ended}(%barrier: !llvm.ptr, %parity: i32) -> i1 {
  %shift = arith.constant ${parity_shift} : i64
  %one = arith.constant 1 : i64
  %state = llvm.load %barrier : !llvm.ptr -> i64
  %shifted = arith.shrui %state, %shift : i64
  %now = arith.andi %shifted, %one : i64
  %asked = arith.extui %parity : i32 to i64
  %ended = arith.cmpi ne, %now, %asked : i64
  return %ended : i1
}
