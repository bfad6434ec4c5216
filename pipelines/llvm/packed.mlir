// ==== entry
llvm.func internal @"${prefix}${name}"(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {
  %count = llvm.mlir.constant(${pointers} : i32) : i32
  %more = llvm.mlir.constant(${sizes} : i32) : i32
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %data = llvm.alloca %count x !llvm.ptr : (i32) -> !llvm.ptr
  %table = llvm.mlir.addressof @__relayc_table : !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_strings : !llvm.ptr
  %entry = llvm.getelementptr %table[${row}] : (!llvm.ptr) -> !llvm.ptr, i64
  %tensors = llvm.sub %n, %more : i32
  %status = llvm.call @__relayc_check(%entry, %args, %tensors, %data, %strings) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr) -> i32
  %good = llvm.icmp "eq" %status, %zero : i32
  llvm.cond_br %good, ^run, ^end(%status : i32)
^run:
${body}
^end(%found: i32):
  llvm.return %found : i32
}
