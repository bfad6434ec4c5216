// ==== text
// Copies the first bytes of a piece, and makes the others zero.
func.func private @${copy}(%words: !llvm.ptr) {
  %to = llvm.load %words : !llvm.ptr -> !llvm.ptr
  %p1 = llvm.getelementptr %words[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %from = llvm.load %p1 : !llvm.ptr -> !llvm.ptr
  %p2 = llvm.getelementptr %words[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %size = llvm.load %p2 : !llvm.ptr -> i64
  %p3 = llvm.getelementptr %words[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %there = llvm.load %p3 : !llvm.ptr -> i64
  %zero = llvm.mlir.constant(0 : i8) : i8
  "llvm.intr.memset"(%to, %zero, %size) <{isVolatile = false}> : (!llvm.ptr, i8, i64) -> ()
  "llvm.intr.memcpy"(%to, %from, %there) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  return
}

// ==== checked
// The same, noted as a write of a thread: behind the words of the copy are the memory of its block, its number, and the number of the site.
func.func private @${checked_copy}(%words: !llvm.ptr) {
  %to = llvm.load %words : !llvm.ptr -> !llvm.ptr
  %p2 = llvm.getelementptr %words[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %size = llvm.load %p2 : !llvm.ptr -> i64
  %p4 = llvm.getelementptr %words[4] : (!llvm.ptr) -> !llvm.ptr, i64
  %block = llvm.load %p4 : !llvm.ptr -> !llvm.ptr
  %p5 = llvm.getelementptr %words[5] : (!llvm.ptr) -> !llvm.ptr, i64
  %both = llvm.load %p5 : !llvm.ptr -> i64
  %bits = arith.constant ${site_shift} : i64
  %mask = arith.constant ${site_mask} : i64
  %writes = arith.constant ${writes} : i64
  %site = arith.shrui %both, %bits : i64
  %thread = arith.andi %both, %mask : i64
  func.call @${use}(%block, %thread, %to, %size, %site, %writes) : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64) -> ()
  func.call @${copy}(%words) : (!llvm.ptr) -> ()
  return
}

func.func private @${use}(!llvm.ptr, i64, !llvm.ptr, i64, i64, i64)
func.func private @${copy}(!llvm.ptr)
