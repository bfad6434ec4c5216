// ==== call
llvm.func @TVMFFIFunctionGetGlobal(!llvm.ptr, !llvm.ptr) -> i32
llvm.func @TVMFFIFunctionCall(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
llvm.func @TVMFFIObjectDecRef(!llvm.ptr) -> i32
llvm.func @TVMFFITensorFromDLPackVersioned(!llvm.ptr, i32, i32, !llvm.ptr) -> i32
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)

// Creates a tensor object for data with the description at `row`, and writes its handle to `out`. Returns 0, or another number with an
// error raised.
llvm.func internal @__relayc_make_tensor(%row: !llvm.ptr, %data: !llvm.ptr, %out: !llvm.ptr) -> i32
    attributes {no_inline, passthrough = ["optsize"]} {
  %no = llvm.mlir.constant(0 : i32) : i32
  %zero = llvm.mlir.constant(0 : i64) : i64
  %version = llvm.mlir.constant(1 : i64) : i64
  %cpu = llvm.mlir.constant(1 : i64) : i64
  %size = llvm.mlir.constant(80 : i64) : i64
  %each = llvm.mlir.constant(16 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %free = llvm.mlir.addressof @free : !llvm.ptr
  %0 = llvm.getelementptr %row[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %rank = llvm.load %0 : !llvm.ptr -> i64
  %extents = llvm.mul %rank, %each : i64
  %1 = llvm.add %size, %extents : i64
  %tensor = llvm.call @malloc(%1) : (i64) -> !llvm.ptr
  %2 = llvm.icmp "eq" %tensor, %null : !llvm.ptr
  llvm.cond_br %2, ^no_memory, ^fill
^no_memory:
  %strings = llvm.mlir.addressof @__relayc_call_strings : !llvm.ptr
  %kind = llvm.getelementptr %strings[${memory_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %message = llvm.getelementptr %strings[${no_memory}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  %bad = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %bad : i32
^fill:
  llvm.store %version, %tensor : i64, !llvm.ptr
  %3 = llvm.getelementptr %tensor[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %3 : i64, !llvm.ptr
  %4 = llvm.getelementptr %tensor[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %free, %4 : !llvm.ptr, !llvm.ptr
  %5 = llvm.getelementptr %tensor[3] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %5 : i64, !llvm.ptr
  %6 = llvm.getelementptr %tensor[4] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %data, %6 : !llvm.ptr, !llvm.ptr
  %7 = llvm.getelementptr %tensor[5] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %cpu, %7 : i64, !llvm.ptr
  %8 = llvm.load %row : !llvm.ptr -> i64
  %9 = llvm.getelementptr %tensor[6] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %8, %9 : i64, !llvm.ptr
  %shape = llvm.getelementptr %tensor[10] : (!llvm.ptr) -> !llvm.ptr, i64
  %10 = llvm.getelementptr %tensor[7] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %shape, %10 : !llvm.ptr, !llvm.ptr
  %strides = llvm.getelementptr %shape[%rank] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %11 = llvm.getelementptr %tensor[8] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %strides, %11 : !llvm.ptr, !llvm.ptr
  %12 = llvm.getelementptr %tensor[9] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %12 : i64, !llvm.ptr
  %13 = llvm.getelementptr %row[2] : (!llvm.ptr) -> !llvm.ptr, i64
  "llvm.intr.memcpy"(%shape, %13, %extents) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
  %status = llvm.call @TVMFFITensorFromDLPackVersioned(%tensor, %no, %no, %out) : (!llvm.ptr, i32, i32, !llvm.ptr) -> i32
  llvm.return %status : i32
}

// Calls a packed function on tensors whose data pointers are in `data`. Returns 0, or -1 with an error raised.
llvm.func internal @__relayc_call_packed(%row: !llvm.ptr, %data: !llvm.ptr) -> i32
    attributes {no_inline, passthrough = ["optsize"]} {
  %good = llvm.mlir.constant(0 : i32) : i32
  %bad = llvm.mlir.constant(-1 : i32) : i32
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %two = llvm.mlir.constant(2 : i64) : i64
  %tensor_kind = llvm.mlir.constant(70 : i64) : i64
  %first_object = llvm.mlir.constant(64 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_call_strings : !llvm.ptr
  %n = llvm.load %row : !llvm.ptr -> i64
  %args = llvm.alloca %n x !llvm.array<2 x i64> : (i64) -> !llvm.ptr
  %name = llvm.alloca %one x !llvm.array<2 x i64> : (i64) -> !llvm.ptr
  %handle = llvm.alloca %one x !llvm.ptr : (i64) -> !llvm.ptr
  %result = llvm.alloca %one x !llvm.array<2 x i64> : (i64) -> !llvm.ptr
  %0 = llvm.getelementptr %row[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %1 = llvm.load %0 : !llvm.ptr -> i64
  %2 = llvm.getelementptr %strings[%1] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  llvm.store %2, %name : !llvm.ptr, !llvm.ptr
  %3 = llvm.getelementptr %row[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %4 = llvm.load %3 : !llvm.ptr -> i64
  %5 = llvm.getelementptr %name[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %4, %5 : i64, !llvm.ptr
  llvm.store %null, %handle : !llvm.ptr, !llvm.ptr
  %6 = llvm.call @TVMFFIFunctionGetGlobal(%name, %handle) : (!llvm.ptr, !llvm.ptr) -> i32
  %7 = llvm.icmp "eq" %6, %good : i32
  llvm.cond_br %7, ^found, ^failed
^failed:
  llvm.return %bad : i32
^found:
  %function = llvm.load %handle : !llvm.ptr -> !llvm.ptr
  %8 = llvm.icmp "eq" %function, %null : !llvm.ptr
  %first = llvm.getelementptr %row[4] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.cond_br %8, ^missing, ^next(%zero, %first : i64, !llvm.ptr)
^missing:
  %kind = llvm.getelementptr %strings[${value_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %9 = llvm.getelementptr %row[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %10 = llvm.load %9 : !llvm.ptr -> i64
  %message = llvm.getelementptr %strings[%10] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return %bad : i32

^next(%i: i64, %at: !llvm.ptr):
  %11 = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %11, ^tensor, ^call
^tensor:
  %12 = llvm.getelementptr %data[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %13 = llvm.load %12 : !llvm.ptr -> !llvm.ptr
  %any = llvm.getelementptr %args[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  llvm.store %tensor_kind, %any : i64, !llvm.ptr
  %14 = llvm.getelementptr %any[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %15 = llvm.call @__relayc_make_tensor(%at, %13, %14) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  %16 = llvm.getelementptr %at[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %rank = llvm.load %16 : !llvm.ptr -> i64
  %17 = llvm.mul %rank, %two : i64
  %18 = llvm.add %17, %two : i64
  %19 = llvm.getelementptr %at[%18] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %20 = llvm.add %i, %one : i64
  %21 = llvm.icmp "eq" %15, %good : i32
  llvm.cond_br %21, ^next(%20, %19 : i64, !llvm.ptr), ^release(%i, %bad : i64, i32)

^call:
  llvm.store %zero, %result : i64, !llvm.ptr
  %22 = llvm.getelementptr %result[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %zero, %22 : i64, !llvm.ptr
  %count = llvm.trunc %n : i64 to i32
  %23 = llvm.call @TVMFFIFunctionCall(%function, %args, %count, %result) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  %24 = llvm.icmp "eq" %23, %good : i32
  // The function's result is ignored.
  %type = llvm.load %result : !llvm.ptr -> i32
  %25 = llvm.icmp "sge" %type, %first_object : i32
  %status = llvm.select %24, %good, %bad : i1, i32
  llvm.cond_br %25, ^object, ^release(%n, %status : i64, i32)
^object:
  %26 = llvm.load %22 : !llvm.ptr -> !llvm.ptr
  %27 = llvm.call @TVMFFIObjectDecRef(%26) : (!llvm.ptr) -> i32
  llvm.br ^release(%n, %status : i64, i32)

^release(%left: i64, %given: i32):
  %28 = llvm.icmp "eq" %left, %zero : i64
  llvm.cond_br %28, ^done, ^argument
^argument:
  %29 = llvm.sub %left, %one : i64
  %30 = llvm.getelementptr %args[%29] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  %31 = llvm.getelementptr %30[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %32 = llvm.load %31 : !llvm.ptr -> !llvm.ptr
  %33 = llvm.call @TVMFFIObjectDecRef(%32) : (!llvm.ptr) -> i32
  llvm.br ^release(%29, %given : i64, i32)
^done:
  %34 = llvm.call @TVMFFIObjectDecRef(%function) : (!llvm.ptr) -> i32
  llvm.return %given : i32
}

// ==== packed
llvm.func internal @${name}(${parameters}) -> i32 attributes {no_inline, passthrough = ["optsize"]} {
  %count = llvm.mlir.constant(${count} : i32) : i32
  %data = llvm.alloca %count x !llvm.ptr : (i32) -> !llvm.ptr
${stores}
  %table = llvm.mlir.addressof @__relayc_call_table : !llvm.ptr
  %known = llvm.getelementptr %table[${row}] : (!llvm.ptr) -> !llvm.ptr, i64
${sizes}
  %status = llvm.call @__relayc_call_packed(${filled}, %data) : (!llvm.ptr, !llvm.ptr) -> i32
  llvm.return %status : i32
}

// ==== raise
llvm.func internal @${name}(${parameters}) attributes {no_inline, passthrough = ["cold", "minsize", "optsize"]} {
  %size = llvm.mlir.constant(1024 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_call_strings : !llvm.ptr
  %kind = llvm.getelementptr %strings[${kind}] : (!llvm.ptr) -> !llvm.ptr, i8
  %format = llvm.getelementptr %strings[${message}] : (!llvm.ptr) -> !llvm.ptr, i8
  %0 = llvm.call @snprintf(${values}) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>) : (${types}) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}
