// ==== function
llvm.func internal @__relayc_sizes(%entry: !llvm.ptr, %program: !llvm.ptr, %args: !llvm.ptr, %data: !llvm.ptr, %values: !llvm.ptr,
                                   %strings: !llvm.ptr) -> i32
    attributes {no_inline, passthrough = ["optsize"]} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %largest = llvm.mlir.constant(9223372036854775807 : i64) : i64
  %smallest = llvm.mlir.constant(-9223372036854775807 : i64) : i64
  %room = llvm.load %program : !llvm.ptr -> i64
  %stack = llvm.alloca %room x i64 : (i64) -> !llvm.ptr
  %messages = llvm.mlir.addressof @__relayc_messages : !llvm.ptr
  %value_error = llvm.getelementptr %messages[${value_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %bottom = llvm.getelementptr %stack[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %first = llvm.getelementptr %program[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.br ^next(%first, %bottom : !llvm.ptr, !llvm.ptr)
^next(%at: !llvm.ptr, %top: !llvm.ptr):
  %0 = llvm.load %at : !llvm.ptr -> i64
  %1 = llvm.getelementptr %at[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %n = llvm.load %1 : !llvm.ptr -> i64
  %after = llvm.getelementptr %at[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %b_at = llvm.getelementptr %top[-1] : (!llvm.ptr) -> !llvm.ptr, i64
  %a_at = llvm.getelementptr %top[-2] : (!llvm.ptr) -> !llvm.ptr, i64
  %b = llvm.load %b_at : !llvm.ptr -> i64
  %a = llvm.load %a_at : !llvm.ptr -> i64
  llvm.switch %0 : i64, ^end [
    ${cases}
  ]
^end:
  %good = llvm.mlir.constant(0 : i32) : i32
  llvm.return %good : i32

^push(%pushed: i64):
  llvm.store %pushed, %top : i64, !llvm.ptr
  %2 = llvm.getelementptr %top[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.br ^next(%after, %2 : !llvm.ptr, !llvm.ptr)
^number:
  llvm.br ^push(%n : i64)
^symbol:
  %3 = llvm.getelementptr %values[%n] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %4 = llvm.load %3 : !llvm.ptr -> i64
  llvm.br ^push(%4 : i64)
^dimension:
  %bits = llvm.mlir.constant(16 : i64) : i64
  %low = llvm.mlir.constant(65535 : i64) : i64
  %5 = llvm.lshr %n, %bits : i64
  %axis = llvm.and %n, %low : i64
  %6 = llvm.getelementptr %data[%5] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %7 = llvm.load %6 : !llvm.ptr -> !llvm.ptr
  %8 = llvm.getelementptr %7[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %shape = llvm.load %8 : !llvm.ptr -> !llvm.ptr
  %9 = llvm.getelementptr %shape[%axis] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %10 = llvm.load %9 : !llvm.ptr -> i64
  llvm.br ^push(%10 : i64)
^kind:
  %11 = llvm.getelementptr %args[%n] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i32, i32, i64)>
  %12 = llvm.load %11 : !llvm.ptr -> i32
  %13 = llvm.zext %12 : i32 to i64
  llvm.br ^push(%13 : i64)
^integer:
  %14 = llvm.getelementptr %args[%n] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i32, i32, i64)>
  %15 = llvm.getelementptr %14[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %16 = llvm.load %15 : !llvm.ptr -> i64
  llvm.br ^push(%16 : i64)

^join(%joined: i64):
  llvm.store %joined, %a_at : i64, !llvm.ptr
  llvm.br ^next(%after, %b_at : !llvm.ptr, !llvm.ptr)
^multiply:
  %17 = "llvm.intr.smul.with.overflow"(%a, %b) : (i64, i64) -> !llvm.struct<(i64, i1)>
  %18 = llvm.extractvalue %17[0] : !llvm.struct<(i64, i1)>
  %beyond = llvm.extractvalue %17[1] : !llvm.struct<(i64, i1)>
  %19 = llvm.xor %a, %b : i64
  %negative = llvm.icmp "slt" %19, %zero : i64
  %20 = llvm.select %negative, %smallest, %largest : i1, i64
  %21 = llvm.select %beyond, %20, %18 : i1, i64
  llvm.br ^join(%21 : i64)
^add:
  // A saturated number stays saturated, whatever is subtracted.
  %22 = llvm.intr.sadd.sat(%a, %b) : (i64, i64) -> i64
  %23 = llvm.intr.smax(%a, %b) : (i64, i64) -> i64
  %24 = llvm.icmp "eq" %23, %largest : i64
  %25 = llvm.select %24, %largest, %22 : i1, i64
  llvm.br ^join(%25 : i64)
^floor:
  %den = llvm.intr.smax(%b, %one) : (i64, i64) -> i64
  %26 = llvm.sdiv %a, %den : i64
  %27 = llvm.srem %a, %den : i64
  %below = llvm.icmp "slt" %27, %zero : i64
  %28 = llvm.zext %below : i1 to i64
  %29 = llvm.sub %26, %28 : i64
  llvm.br ^join(%29 : i64)
^min:
  %30 = llvm.intr.smin(%a, %b) : (i64, i64) -> i64
  llvm.br ^join(%30 : i64)
^max:
  %31 = llvm.intr.smax(%a, %b) : (i64, i64) -> i64
  llvm.br ^join(%31 : i64)

^set:
  %32 = llvm.getelementptr %values[%n] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.store %b, %32 : i64, !llvm.ptr
  llvm.br ^next(%after, %b_at : !llvm.ptr, !llvm.ptr)
^leave(%holds: i1):
  %33 = llvm.select %holds, %n, %zero : i1, i64
  %34 = llvm.getelementptr %after[%33] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.br ^next(%34, %a_at : !llvm.ptr, !llvm.ptr)
^equal:
  %35 = llvm.icmp "eq" %a, %b : i64
  llvm.br ^leave(%35 : i1)
^at_least:
  %36 = llvm.icmp "sge" %a, %b : i64
  llvm.br ^leave(%36 : i1)

^raise:
  %size = llvm.mlir.constant(1024 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %form = llvm.getelementptr %strings[%n] : (!llvm.ptr, i64) -> !llvm.ptr, i8
${loads}
  %37 = llvm.call @snprintf(%message, %size, %form, ${operands}) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, ${types}) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%value_error, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  %failed = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %failed : i32
^raise_tensor:
  %38 = llvm.getelementptr %top[-3] : (!llvm.ptr) -> !llvm.ptr, i64
  %39 = llvm.load %38 : !llvm.ptr -> i64
  %tensor = llvm.trunc %39 : i64 to i32
  %row = llvm.getelementptr %entry[%a] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %40 = llvm.getelementptr %data[%b] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %described = llvm.load %40 : !llvm.ptr -> !llvm.ptr
  %note = llvm.getelementptr %strings[%n] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %41 = llvm.call @__relayc_raise_tensor(%value_error, %entry, %tensor, %row, %described, %note, %strings)
    : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.return %41 : i32
}
