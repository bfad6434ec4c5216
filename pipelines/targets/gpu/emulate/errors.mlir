// ==== text
llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32
${strings}
${sites}
${messages}

// Raises the error that a record holds, where it holds one: then it gives -1, else 0.
func.func private @${name}(%record: !llvm.ptr, %kernel: i64) -> i32 attributes {no_inline} {
  %good = arith.constant 0 : i32
  %bad = arith.constant -1 : i32
  %zero = arith.constant 0 : i64
  %what = llvm.load %record : !llvm.ptr -> i64
  %wrong = arith.cmpi ne, %what, %zero : i64
  %status = scf.if %wrong -> (i32) {
    %size = arith.constant 2048 : i64
    %text = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
    %strings = llvm.mlir.addressof @__relayc_gpu_strings : !llvm.ptr
    %sites = llvm.mlir.addressof @__relayc_gpu_sites : !llvm.ptr
    %formats = llvm.mlir.addressof @__relayc_gpu_messages : !llvm.ptr
    %p1 = llvm.getelementptr %record[1] : (!llvm.ptr) -> !llvm.ptr, i64
    %block = llvm.load %p1 : !llvm.ptr -> i64
    %p2 = llvm.getelementptr %record[2] : (!llvm.ptr) -> !llvm.ptr, i64
    %t0 = llvm.load %p2 : !llvm.ptr -> i64
    %p3 = llvm.getelementptr %record[3] : (!llvm.ptr) -> !llvm.ptr, i64
    %n0 = llvm.load %p3 : !llvm.ptr -> i64
    %p4 = llvm.getelementptr %record[4] : (!llvm.ptr) -> !llvm.ptr, i64
    %t1 = llvm.load %p4 : !llvm.ptr -> i64
    %p5 = llvm.getelementptr %record[5] : (!llvm.ptr) -> !llvm.ptr, i64
    %n1 = llvm.load %p5 : !llvm.ptr -> i64
    %p6 = llvm.getelementptr %record[6] : (!llvm.ptr) -> !llvm.ptr, i64
    %more = llvm.load %p6 : !llvm.ptr -> i64
    %alone = arith.cmpi slt, %t1, %zero : i64
    %which = arith.select %alone, %zero, %what : i64
    %pf = llvm.getelementptr %formats[%which] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %of = llvm.load %pf : !llvm.ptr -> i64
    %format = llvm.getelementptr %strings[%of] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %ps0 = llvm.getelementptr %sites[%n0] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %os0 = llvm.load %ps0 : !llvm.ptr -> i64
    %s0 = llvm.getelementptr %strings[%os0] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %ps1 = llvm.getelementptr %sites[%n1] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %os1 = llvm.load %ps1 : !llvm.ptr -> i64
    %s1 = llvm.getelementptr %strings[%os1] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %name = llvm.getelementptr %strings[%kernel] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %kind = llvm.getelementptr %strings[${kind}] : (!llvm.ptr) -> !llvm.ptr, i8
    %unused = llvm.call @snprintf(%text, %size, %format, %name, %block, %t0, %s0, %t1, %s1, %more)
      vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>) : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, i64, !llvm.ptr, i64) -> i32
    llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %text) : (!llvm.ptr, !llvm.ptr) -> ()
    scf.yield %bad : i32
  } else {
    scf.yield %good : i32
  }
  return %status : i32
}
