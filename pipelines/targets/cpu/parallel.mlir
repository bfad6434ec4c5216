// ==== fork_if
llvm.func @__kmpc_fork_call(!llvm.ptr, i32, !llvm.ptr, ...)
llvm.func internal @__kmpc_fork_call_if(%location: !llvm.ptr, %count: i32, %region: !llvm.ptr, %condition: i32, %values: !llvm.ptr)
    attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %several = llvm.icmp "ne" %condition, %zero : i32
  llvm.cond_br %several, ^several, ^alone
^several:
  llvm.call @__kmpc_fork_call(%location, %one, %region, %values) vararg(!llvm.func<void (ptr, i32, ptr, ...)>)
      : (!llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> ()
  llvm.return
^alone:
  %thread = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
  llvm.store %zero, %thread : i32, !llvm.ptr
  llvm.call %region(%thread, %thread, %values) {no_inline} : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}

// ==== take
func.func private @${take}(%taken: !llvm.ptr, %total: index, %threads: index, %thread: index, %start: index) -> (index, index, index)
    attributes {llvm.linkage = #llvm.linkage<internal>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %most = arith.constant ${parts} : index
  %turns = arith.constant ${turns} : index
  %parts = arith.minui %threads, %most : index
  %last = arith.subi %parts, %c1 : index
  %total_and_last = arith.addi %total, %last : index
  %share = arith.divui %total_and_last, %parts : index
  %all_turns = arith.muli %threads, %turns : index
  %of_a_turn = arith.divui %total, %all_turns : index
  %one_or_more = arith.maxui %of_a_turn, %c1 : index
  %is_alone = arith.cmpi eq, %threads, %c1 : index
  %grain = arith.select %is_alone, %share, %one_or_more : index
  %count = arith.index_cast %grain : index to i64
  cf.br ^look(%start : index)
^look(%number: index):
  %is_left = arith.cmpi ult, %number, %parts : index
  cf.cond_br %is_left, ^take, ^nothing
^take:
  %sought = arith.addi %thread, %number : index
  %part = arith.remui %sought, %parts : index
  %first = arith.muli %part, %share : index
  %first_there = arith.minui %first, %total : index
  %rest = arith.subi %total, %first_there : index
  %length = arith.minui %share, %rest : index
  %place = arith.index_cast %part : index to i64
  %counter = llvm.getelementptr %taken[%place] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<${line} x i8>
  %before = llvm.atomicrmw add %counter, %count monotonic : !llvm.ptr, i64
  %done = arith.index_cast %before : i64 to index
  %is_there = arith.cmpi ult, %done, %length : index
  %next = arith.addi %number, %c1 : index
  cf.cond_br %is_there, ^found, ^look(%next : index)
^found:
  %begin = arith.addi %first_there, %done : index
  %reached = arith.addi %done, %grain : index
  %reached_there = arith.minui %reached, %length : index
  %end = arith.addi %first_there, %reached_there : index
  return %begin, %end, %number : index, index, index
^nothing:
  return %c0, %c0, %parts : index, index, index
}
