// ==== place
// The address of a byte that is `offset` behind the start that a descriptor names; `base` is where shared memory begins. Bits 62-63 of the
// descriptor give the permutation (0: none; 1, 2, 3: by lines of 128, 64 and 32 bytes), bits 49-51 the line that the pattern begins with:
// the lowest 0, 3, 2 or 1 bits from bit 4 on of an address are exclusive-or'ed with those from bit 7 on.
func.func private @${place}(%base: i64, %descriptor: i64, %offset: i64) -> !llvm.ptr {
  %mask = arith.constant 16383 : i64
  %c4 = arith.constant 4 : i64
  %start0 = arith.andi %descriptor, %mask : i64
  %start = arith.shli %start0, %c4 : i64
  %plain = arith.addi %start, %offset : i64
  %c7 = arith.constant 7 : i64
  %c49 = arith.constant 49 : i64
  %c60 = arith.constant 60 : i64
  %c12 = arith.constant 12 : i64
  %masks = arith.constant ${permuted_bits} : i64
  %high = arith.shrui %descriptor, %c60 : i64
  %mode = arith.andi %high, %c12 : i64
  %bits = arith.shrui %masks, %mode : i64
  %skipped = arith.shrui %descriptor, %c49 : i64
  %line0 = arith.shrui %plain, %c7 : i64
  %line1 = arith.subi %line0, %skipped : i64
  %line2 = arith.andi %line1, %bits : i64
  %line = arith.andi %line2, %c7 : i64
  %chunk = arith.shli %line, %c4 : i64
  %permuted = arith.xori %plain, %chunk : i64
  %address = arith.addi %base, %permuted : i64
  %pointer = llvm.inttoptr %address : i64 to !llvm.ptr
  return %pointer : !llvm.ptr
}
