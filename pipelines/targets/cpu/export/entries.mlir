// ==== prepare
llvm.mlir.global internal @__relayc_prepared(0 : i32) : i32
llvm.func internal @__relayc_prepare() -> i32 attributes {no_inline, passthrough = ["optsize"]} {
  %good = llvm.mlir.constant(0 : i32) : i32
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i32) : i32
  %call = llvm.mlir.constant(158 : i64) : i64
  %request = llvm.mlir.constant(4131 : i64) : i64
  %component = llvm.mlir.constant(18 : i64) : i64
  %flag = llvm.mlir.addressof @__relayc_prepared : !llvm.ptr
  %0 = llvm.load %flag : !llvm.ptr -> i32
  %1 = llvm.icmp "eq" %0, %good : i32
  llvm.cond_br %1, ^ask, ^done
^ask:
  %2 = llvm.call @syscall(%call, %request, %component) vararg(!llvm.func<i64 (i64, ...)>) : (i64, i64, i64) -> i64
  %3 = llvm.icmp "eq" %2, %zero : i64
  llvm.cond_br %3, ^mark, ^refused
^mark:
  llvm.store %one, %flag : i32, !llvm.ptr
  llvm.br ^done
^done:
  llvm.return %good : i32
^refused:
  %strings = llvm.mlir.addressof @__relayc_texts : !llvm.ptr
  %kind = llvm.getelementptr %strings[${kind}] : (!llvm.ptr) -> !llvm.ptr, i8
  %format = llvm.getelementptr %strings[${refused}] : (!llvm.ptr) -> !llvm.ptr, i8
  %4 = llvm.call @__relayc_fail(%kind, %format, %format, %good) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i32) -> i32
  llvm.return %4 : i32
}
