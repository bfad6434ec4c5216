// ==== permuted
// Where in shared memory a byte is of lines of 128 bytes that are permuted: bits 4-6 of an address are exclusive-or'ed with bits 7-9.
func.func private @${permuted}(%plain: i64) -> i64 {
  %c4 = arith.constant 4 : i64
  %c7 = arith.constant 7 : i64
  %line = arith.shrui %plain, %c7 : i64
  %in_eight = arith.andi %line, %c7 : i64
  %bits = arith.shli %in_eight, %c4 : i64
  %permuted = arith.xori %plain, %bits : i64
  return %permuted : i64
}

// ==== line
// Copies the line of a box, of whole chunks of 16 bytes, to a line of shared memory (both as numbers), which is
// permuted. Of the tensor's line, which begins at `base`, `size` bytes are there, none where it is not `inside`, and
// the box begins `at` bytes behind its start. What is not there is 0.
func.func private @${line}(%to: i64, %base: i64, %inside: i1, %at: i64, %size: i64, %count: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c16 = arith.constant 16 : i64
  %zero = arith.constant 0 : i8
  %zeros = arith.constant dense<0> : vector<16xi8>
  %source = llvm.inttoptr %base : i64 to !llvm.ptr
  scf.for %chunk = %c0 to %count step %c16 : i64 {
    %from = arith.addi %at, %chunk : i64
    %end = arith.addi %from, %c16 : i64
    %begins = arith.cmpi sge, %from, %c0 : i64
    %ends = arith.cmpi sle, %end, %size : i64
    %both = arith.andi %begins, %ends : i1
    %whole = arith.andi %both, %inside : i1
    %value = scf.if %whole -> vector<16xi8> {
      %p = llvm.getelementptr %source[%from] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      %v = llvm.load %p {alignment = 1 : i64} : !llvm.ptr -> vector<16xi8>
      scf.yield %v : vector<16xi8>
    } else {
      %some = scf.for %i = %c0 to %c16 step %c1 iter_args(%so_far = %zeros) -> (vector<16xi8>) : i64 {
        %byte = arith.addi %from, %i : i64
        %in = arith.cmpi ult, %byte, %size : i64
        %all = arith.andi %in, %inside : i1
        %one = scf.if %all -> i8 {
          %p = llvm.getelementptr %source[%byte] : (!llvm.ptr, i64) -> !llvm.ptr, i8
          %v = llvm.load %p : !llvm.ptr -> i8
          scf.yield %v : i8
        } else {
          scf.yield %zero : i8
        }
        %index = arith.index_cast %i : i64 to index
        %more = vector.insert %one, %so_far [%index] : i8 into vector<16xi8>
        scf.yield %more : vector<16xi8>
      }
      scf.yield %some : vector<16xi8>
    }
    %plain = arith.addi %to, %chunk : i64
    %permuted = func.call @${permuted}(%plain) : (i64) -> i64
    %target = llvm.inttoptr %permuted : i64 to !llvm.ptr
    llvm.store %value, %target {alignment = 16 : i64} : vector<16xi8>, !llvm.ptr
  }
  return
}
