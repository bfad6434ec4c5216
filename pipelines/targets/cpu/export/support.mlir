// ==== support
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32
llvm.func @aligned_alloc(i64, i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)
llvm.func @syscall(i64, ...) -> i64
llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)
llvm.func @TVMFFIFunctionGetGlobal(!llvm.ptr, !llvm.ptr) -> i32
llvm.func @TVMFFIFunctionCall(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
llvm.func @TVMFFIObjectDecRef(!llvm.ptr) -> i32
llvm.func @TVMFFITensorFromDLPackVersioned(!llvm.ptr, i32, i32, !llvm.ptr) -> i32
llvm.func @TVMFFIStringFromByteArray(!llvm.ptr, !llvm.ptr) -> i32
llvm.func @${entries}() -> !llvm.ptr
llvm.mlir.global external @${params}() : !llvm.array<1 x i8>

// The arena that no call has, or null.
llvm.mlir.global internal @__relayc_arena(0 : i64) : i64

// Raises an error whose message has places for a name and a number.
llvm.func internal @__relayc_fail(%kind: !llvm.ptr, %format: !llvm.ptr, %name: !llvm.ptr, %number: i32) -> i32
    attributes {no_inline, passthrough = ["cold", "optsize"]} {
  %size = llvm.mlir.constant(1024 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %0 = llvm.call @snprintf(%message, %size, %format, %name, %number) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i32) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  %failed = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %failed : i32
}

llvm.func internal @__relayc_no_memory() -> i32 attributes {no_inline, passthrough = ["cold", "optsize"]} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %strings = llvm.mlir.addressof @__relayc_texts : !llvm.ptr
  %kind = llvm.getelementptr %strings[${memory_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %format = llvm.getelementptr %strings[${no_memory}] : (!llvm.ptr) -> !llvm.ptr, i8
  %0 = llvm.call @__relayc_fail(%kind, %format, %format, %zero) : (!llvm.ptr, !llvm.ptr, !llvm.ptr, i32) -> i32
  llvm.return %0 : i32
}

// The packed entry of a number (runtime.artifact.ENTRIES_SYMBOL), called.
llvm.func internal @__relayc_call(%number: i64, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {
  %table = llvm.call @${entries}() : () -> !llvm.ptr
  %place = llvm.getelementptr %table[%number] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %entry = llvm.load %place : !llvm.ptr -> !llvm.ptr
  %null = llvm.mlir.zero : !llvm.ptr
  %0 = llvm.call %entry(%null, %args, %n, %result) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  llvm.return %0 : i32
}

// Memory of at least so many bytes, or null. One arena is kept for the next call; calls at the same time have their own.
llvm.func internal @__relayc_take(%wanted: i64) -> !llvm.ptr attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %head = llvm.mlir.constant(64 : i64) : i64
  %mask = llvm.mlir.constant(-64 : i64) : i64
  %rest = llvm.mlir.constant(127 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %slot = llvm.mlir.addressof @__relayc_arena : !llvm.ptr
  %0 = llvm.atomicrmw xchg %slot, %zero acq_rel : !llvm.ptr, i64
  %kept = llvm.inttoptr %0 : i64 to !llvm.ptr
  %1 = llvm.icmp "eq" %0, %zero : i64
  llvm.cond_br %1, ^new, ^measure
^measure:
  %size = llvm.load %kept : !llvm.ptr -> i64
  %2 = llvm.icmp "sge" %size, %wanted : i64
  llvm.cond_br %2, ^give(%kept : !llvm.ptr), ^small
^small:
  llvm.call @free(%kept) : (!llvm.ptr) -> ()
  llvm.br ^new
^new:
  %3 = llvm.add %wanted, %rest : i64
  %bytes = llvm.and %3, %mask : i64
  %made = llvm.call @aligned_alloc(%head, %bytes) : (i64, i64) -> !llvm.ptr
  %4 = llvm.icmp "eq" %made, %null : !llvm.ptr
  llvm.cond_br %4, ^none, ^mark
^none:
  llvm.return %null : !llvm.ptr
^mark:
  %5 = llvm.sub %bytes, %head : i64
  llvm.store %5, %made : i64, !llvm.ptr
  llvm.br ^give(%made : !llvm.ptr)
^give(%arena: !llvm.ptr):
  %6 = llvm.getelementptr %arena[64] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.return %6 : !llvm.ptr
}

// Gives an arena back.
llvm.func internal @__relayc_put(%arena: !llvm.ptr) attributes {no_inline} {
  %slot = llvm.mlir.addressof @__relayc_arena : !llvm.ptr
  %0 = llvm.getelementptr %arena[-64] : (!llvm.ptr) -> !llvm.ptr, i8
  %1 = llvm.ptrtoint %0 : !llvm.ptr to i64
  %2 = llvm.atomicrmw xchg %slot, %1 acq_rel : !llvm.ptr, i64
  %other = llvm.inttoptr %2 : i64 to !llvm.ptr
  llvm.call @free(%other) : (!llvm.ptr) -> ()
  llvm.return
}

// A dimension of an argument; 0 where that is no tensor, or one of less dimensions.
llvm.func internal @__relayc_dimension(%args: !llvm.ptr, %input: i64, %axis: i64) -> i64 attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %pointer_kind = llvm.mlir.constant(7 : i32) : i32
  %object_kind = llvm.mlir.constant(70 : i32) : i32
  %any = llvm.getelementptr %args[%input] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i32, i32, i64)>
  %kind = llvm.load %any : !llvm.ptr -> i32
  %0 = llvm.getelementptr %any[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %value = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %1 = llvm.icmp "eq" %kind, %pointer_kind : i32
  llvm.cond_br %1, ^tensor(%value : !llvm.ptr), ^object
^object:
  %2 = llvm.icmp "eq" %kind, %object_kind : i32
  %3 = llvm.getelementptr %value[24] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.cond_br %2, ^tensor(%3 : !llvm.ptr), ^nothing
^tensor(%tensor: !llvm.ptr):
  %4 = llvm.getelementptr %tensor[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %5 = llvm.load %4 : !llvm.ptr -> i32
  %rank = llvm.sext %5 : i32 to i64
  %6 = llvm.icmp "slt" %axis, %rank : i64
  llvm.cond_br %6, ^read, ^nothing
^read:
  %7 = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %shape = llvm.load %7 : !llvm.ptr -> !llvm.ptr
  %8 = llvm.getelementptr %shape[%axis] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %9 = llvm.load %8 : !llvm.ptr -> i64
  llvm.return %9 : i64
^nothing:
  llvm.return %zero : i64
}

// Lets go of the objects among some values.
llvm.func internal @__relayc_release(%anys: !llvm.ptr, %n: i64) attributes {no_inline, passthrough = ["optsize"]} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  llvm.br ^next(%zero : i64)
^next(%i: i64):
  %more = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %more, ^value, ^done
^value:
  %any = llvm.getelementptr %anys[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  %kind = llvm.load %any : !llvm.ptr -> i64
  %after = llvm.add %i, %one : i64
  %none = llvm.icmp "eq" %kind, %zero : i64
  llvm.cond_br %none, ^next(%after : i64), ^object
^object:
  %0 = llvm.getelementptr %any[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %2 = llvm.call @TVMFFIObjectDecRef(%1) : (!llvm.ptr) -> i32
  llvm.br ^next(%after : i64)
^done:
  llvm.return
}

// Gives several values as one: tvm-ffi's Array of them.
llvm.func internal @__relayc_array(%anys: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32
    attributes {no_inline, passthrough = ["optsize"]} {
  %good = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i64) : i64
  %length = llvm.mlir.constant(9 : i64) : i64
  %name = llvm.alloca %one x !llvm.array<2 x i64> : (i64) -> !llvm.ptr
  %handle = llvm.alloca %one x !llvm.ptr : (i64) -> !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_texts : !llvm.ptr
  %0 = llvm.getelementptr %strings[${array}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %0, %name : !llvm.ptr, !llvm.ptr
  %1 = llvm.getelementptr %name[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %length, %1 : i64, !llvm.ptr
  %2 = llvm.call @TVMFFIFunctionGetGlobal(%name, %handle) : (!llvm.ptr, !llvm.ptr) -> i32
  %3 = llvm.icmp "eq" %2, %good : i32
  llvm.cond_br %3, ^call, ^failed(%2 : i32)
^call:
  %function = llvm.load %handle : !llvm.ptr -> !llvm.ptr
  %4 = llvm.call @TVMFFIFunctionCall(%function, %anys, %n, %result) : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
  %5 = llvm.call @TVMFFIObjectDecRef(%function) : (!llvm.ptr) -> i32
  llvm.br ^failed(%4 : i32)
^failed(%status: i32):
  llvm.return %status : i32
}

// Gives a text, which is so many bytes of the texts from `start` on.
llvm.func internal @__relayc_text(%start: i64, %length: i64, %result: !llvm.ptr) -> i32 attributes {no_inline} {
  %one = llvm.mlir.constant(1 : i64) : i64
  %bytes = llvm.alloca %one x !llvm.array<2 x i64> : (i64) -> !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_texts : !llvm.ptr
  %0 = llvm.getelementptr %strings[%start] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  llvm.store %0, %bytes : !llvm.ptr, !llvm.ptr
  %1 = llvm.getelementptr %bytes[1] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %length, %1 : i64, !llvm.ptr
  %2 = llvm.call @TVMFFIStringFromByteArray(%bytes, %result) : (!llvm.ptr, !llvm.ptr) -> i32
  llvm.return %2 : i32
}
