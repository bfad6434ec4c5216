// ==== tensors
// Creates the DLTensor of CPU memory with one dimension or none, and an argument for it. `kind` is the dtype.
llvm.func internal @__relayc_blob(%any: !llvm.ptr, %tensor: !llvm.ptr, %data: !llvm.ptr, %length: !llvm.ptr, %kind: i32, %rank: i32) {
  %cpu = llvm.mlir.constant(1 : i64) : i64
  %zero = llvm.mlir.constant(0 : i64) : i64
  %pointer_kind = llvm.mlir.constant(7 : i64) : i64
  llvm.store %pointer_kind, %any : i64, !llvm.ptr
  %0 = llvm.getelementptr %any[8] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %tensor, %0 : !llvm.ptr, !llvm.ptr
  llvm.store %data, %tensor : !llvm.ptr, !llvm.ptr
  %1 = llvm.getelementptr %tensor[8] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %cpu, %1 : i64, !llvm.ptr
  %2 = llvm.getelementptr %tensor[16] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %rank, %2 : i32, !llvm.ptr
  %3 = llvm.getelementptr %tensor[20] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %kind, %3 : i32, !llvm.ptr
  %4 = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %length, %4 : !llvm.ptr, !llvm.ptr
  %5 = llvm.getelementptr %tensor[32] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %zero, %5 : i64, !llvm.ptr
  %6 = llvm.getelementptr %tensor[40] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %zero, %6 : i64, !llvm.ptr
  llvm.return
}

// Creates a tensor object of given dimensions and dtype, and an argument for it; returns its data, or null with an error raised.
llvm.func internal @__relayc_tensor(%any: !llvm.ptr, %dims: !llvm.ptr, %rank: i64, %kind: i32, %width: i64) -> !llvm.ptr
    attributes {no_inline, passthrough = ["optsize"]} {
  %no = llvm.mlir.constant(0 : i32) : i32
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %cpu = llvm.mlir.constant(1 : i64) : i64
  %each = llvm.mlir.constant(16 : i64) : i64
  %fixed = llvm.mlir.constant(143 : i64) : i64
  %rest = llvm.mlir.constant(63 : i64) : i64
  %alignment = llvm.mlir.constant(64 : i64) : i64
  %mask = llvm.mlir.constant(-64 : i64) : i64
  %tensor_kind = llvm.mlir.constant(70 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %free = llvm.mlir.addressof @free : !llvm.ptr
  llvm.br ^count(%zero, %width : i64, i64)
^count(%i: i64, %so_far: i64):
  %more = llvm.icmp "slt" %i, %rank : i64
  llvm.cond_br %more, ^dimension, ^allocate
^dimension:
  %0 = llvm.getelementptr %dims[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %1 = llvm.load %0 : !llvm.ptr -> i64
  %2 = llvm.intr.smax(%1, %zero) : (i64, i64) -> i64
  llvm.store %2, %0 : i64, !llvm.ptr
  %3 = llvm.mul %so_far, %2 : i64
  %4 = llvm.add %i, %one : i64
  llvm.br ^count(%4, %3 : i64, i64)
^allocate:
  %extents = llvm.mul %rank, %each : i64
  %5 = llvm.add %extents, %fixed : i64
  %head = llvm.and %5, %mask : i64
  %6 = llvm.add %so_far, %rest : i64
  %body = llvm.and %6, %mask : i64
  %bytes = llvm.add %head, %body : i64
  %made = llvm.call @aligned_alloc(%alignment, %bytes) : (i64, i64) -> !llvm.ptr
  %7 = llvm.icmp "eq" %made, %null : !llvm.ptr
  llvm.cond_br %7, ^no_memory, ^fill
^no_memory:
  %8 = llvm.call @__relayc_no_memory() : () -> i32
  llvm.return %null : !llvm.ptr
^fill:
  %data = llvm.getelementptr %made[%head] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %shape = llvm.getelementptr %made[80] : (!llvm.ptr) -> !llvm.ptr, i8
  %strides = llvm.getelementptr %shape[%rank] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %one, %made : i64, !llvm.ptr
  %9 = llvm.getelementptr %made[8] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %zero, %9 : i64, !llvm.ptr
  %10 = llvm.getelementptr %made[16] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %free, %10 : !llvm.ptr, !llvm.ptr
  %11 = llvm.getelementptr %made[24] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %zero, %11 : i64, !llvm.ptr
  %12 = llvm.getelementptr %made[32] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %data, %12 : !llvm.ptr, !llvm.ptr
  %13 = llvm.getelementptr %made[40] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %cpu, %13 : i64, !llvm.ptr
  %14 = llvm.getelementptr %made[48] : (!llvm.ptr) -> !llvm.ptr, i8
  %15 = llvm.trunc %rank : i64 to i32
  llvm.store %15, %14 : i32, !llvm.ptr
  %16 = llvm.getelementptr %made[52] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %kind, %16 : i32, !llvm.ptr
  %17 = llvm.getelementptr %made[56] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %shape, %17 : !llvm.ptr, !llvm.ptr
  %18 = llvm.getelementptr %made[64] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %strides, %18 : !llvm.ptr, !llvm.ptr
  %19 = llvm.getelementptr %made[72] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %zero, %19 : i64, !llvm.ptr
  llvm.br ^extent(%rank, %one : i64, i64)
^extent(%left: i64, %stride: i64):
  %20 = llvm.icmp "eq" %left, %zero : i64
  llvm.cond_br %20, ^wrap, ^write
^write:
  %21 = llvm.sub %left, %one : i64
  %22 = llvm.getelementptr %dims[%21] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %23 = llvm.load %22 : !llvm.ptr -> i64
  %24 = llvm.getelementptr %shape[%21] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %23, %24 : i64, !llvm.ptr
  %25 = llvm.getelementptr %strides[%21] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %stride, %25 : i64, !llvm.ptr
  %26 = llvm.mul %stride, %23 : i64
  llvm.br ^extent(%21, %26 : i64, i64)
^wrap:
  %27 = llvm.getelementptr %any[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %28 = llvm.call @TVMFFITensorFromDLPackVersioned(%made, %no, %no, %27) : (!llvm.ptr, i32, i32, !llvm.ptr) -> i32
  %good = llvm.icmp "eq" %28, %no : i32
  llvm.cond_br %good, ^done, ^failed
^done:
  llvm.store %tensor_kind, %any : i64, !llvm.ptr
  llvm.return %data : !llvm.ptr
^failed:
  llvm.call @free(%made) : (!llvm.ptr) -> ()
  llvm.return %null : !llvm.ptr
}
