// ==== calls
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32
llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)

llvm.func internal @${context}(%args: !llvm.ptr, %position: i64, %place: !llvm.ptr) -> i32
    attributes {no_inline, passthrough = ["optsize"]} {
  %good = llvm.mlir.constant(0 : i32) : i32
  %bad = llvm.mlir.constant(-1 : i32) : i32
  %integer = llvm.mlir.constant(1 : i32) : i32
  %any = llvm.getelementptr %args[%position] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<2 x i64>
  %type = llvm.load %any : !llvm.ptr -> i32
  %0 = llvm.getelementptr %any[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %value = llvm.load %0 : !llvm.ptr -> i64
  %is_integer = llvm.icmp "eq" %type, %integer : i32
  llvm.cond_br %is_integer, ^found, ^other
^found:
  llvm.store %value, %place : i64, !llvm.ptr
  llvm.return %good : i32
^other:
  %size = llvm.mlir.constant(256 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %strings = llvm.mlir.addressof @__relayc_driver_strings : !llvm.ptr
  %kind = llvm.getelementptr %strings[${type_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %format = llvm.getelementptr %strings[${no_context}] : (!llvm.ptr) -> !llvm.ptr, i8
  %1 = llvm.call @snprintf(%message, %size, %format, %position, %type) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, i64, i32) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return %bad : i32
}

llvm.func internal @${given}(%context: i64) -> !llvm.ptr {
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[${given_word}] : (!llvm.ptr) -> !llvm.ptr, i64
  %1 = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  llvm.return %1 : !llvm.ptr
}

llvm.func internal @${finish}(%context: i64, %status: i32) -> i32 attributes {no_inline, passthrough = ["optsize"]} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %bad = llvm.mlir.constant(-1 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[${status}] : (!llvm.ptr) -> !llvm.ptr, i64
  %found = llvm.load %0 : !llvm.ptr -> i64
  %good = llvm.icmp "eq" %found, %zero : i64
  llvm.cond_br %good, ^done, ^failed
^done:
  llvm.return %status : i32
^failed:
  %size = llvm.mlir.constant(1024 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %name = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr
  %1 = llvm.getelementptr %words[${error_name}] : (!llvm.ptr) -> !llvm.ptr, i64
  %2 = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %code = llvm.trunc %found : i64 to i32
  %strings = llvm.mlir.addressof @__relayc_driver_strings : !llvm.ptr
  %kind = llvm.getelementptr %strings[${runtime_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %kind, %name : !llvm.ptr, !llvm.ptr
  %3 = llvm.call %2(%code, %name) : !llvm.ptr, (i32, !llvm.ptr) -> i32
  %says = llvm.load %name : !llvm.ptr -> !llvm.ptr
  %4 = llvm.getelementptr %words[${failed}] : (!llvm.ptr) -> !llvm.ptr, i64
  %kernel = llvm.load %4 : !llvm.ptr -> i64
  %is_read = llvm.icmp "slt" %kernel, %zero : i64
  llvm.cond_br %is_read, ^read, ^launch
^read:
  %no_map = llvm.mlir.constant(${map_failed} : i64) : i64
  %is_map = llvm.icmp "eq" %kernel, %no_map : i64
  %10 = llvm.getelementptr %strings[${read}] : (!llvm.ptr) -> !llvm.ptr, i8
  %11 = llvm.getelementptr %strings[${tensor_map}] : (!llvm.ptr) -> !llvm.ptr, i8
  %5 = llvm.select %is_map, %11, %10 : i1, !llvm.ptr
  %6 = llvm.call @snprintf(%message, %size, %5, %says) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> i32
  llvm.br ^raise
^launch:
  %7 = llvm.getelementptr %strings[${launch_text}] : (!llvm.ptr) -> !llvm.ptr, i8
  %names = llvm.mlir.addressof @__relayc_kernel_names : !llvm.ptr
  %8 = llvm.getelementptr %names[%kernel] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
  %which = llvm.load %8 : !llvm.ptr -> !llvm.ptr
${sizes}
  %9 = llvm.call @snprintf(%message, %size, %7, %which, ${size_names}, %says) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, ${size_types}, !llvm.ptr) -> i32
  llvm.br ^raise
^raise:
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return %bad : i32
}

// Notes an error of the driver, unless one was noted before.
llvm.func internal @__relayc_note(%words: !llvm.ptr, %result: i32, %what: i64)
    attributes {no_inline, passthrough = ["cold", "optsize"]} {
  %0 = llvm.getelementptr %words[${status}] : (!llvm.ptr) -> !llvm.ptr, i64
  %code = llvm.zext %result : i32 to i64
  llvm.store %code, %0 : i64, !llvm.ptr
  %1 = llvm.getelementptr %words[${failed}] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %what, %1 : i64, !llvm.ptr
  llvm.return
}

llvm.func internal @${launch}(%context: i64, %kernel: i64, %gx: i64, %gy: i64, %gz: i64, %bx: i64, %by: i64, %bz: i64, %shared: i64,
                             %places: !llvm.ptr) attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %good = llvm.mlir.constant(0 : i32) : i32
  %two = llvm.mlir.constant(2 : i64) : i64
  %null = llvm.mlir.zero : !llvm.ptr
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[${status}] : (!llvm.ptr) -> !llvm.ptr, i64
  %before = llvm.load %0 : !llvm.ptr -> i64
  %goes_on = llvm.icmp "eq" %before, %zero : i64
  llvm.cond_br %goes_on, ^launch, ^end
^launch:
  %1 = llvm.getelementptr %words[${functions}] : (!llvm.ptr) -> !llvm.ptr, i64
  %table = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %row = llvm.mul %kernel, %two : i64
  %2 = llvm.getelementptr %table[%row] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %function = llvm.load %2 : !llvm.ptr -> !llvm.ptr
  %3 = llvm.getelementptr %2[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %known = llvm.load %3 : !llvm.ptr -> i64
  %bytes = llvm.intr.umax(%known, %shared) : (i64, i64) -> i64
  %4 = llvm.getelementptr %words[${stream}] : (!llvm.ptr) -> !llvm.ptr, i64
  %stream = llvm.load %4 : !llvm.ptr -> !llvm.ptr
  %5 = llvm.getelementptr %words[${launch_kernel}] : (!llvm.ptr) -> !llvm.ptr, i64
  %call = llvm.load %5 : !llvm.ptr -> !llvm.ptr
  %n0 = llvm.trunc %gx : i64 to i32
  %n1 = llvm.trunc %gy : i64 to i32
  %n2 = llvm.trunc %gz : i64 to i32
  %n3 = llvm.trunc %bx : i64 to i32
  %n4 = llvm.trunc %by : i64 to i32
  %n5 = llvm.trunc %bz : i64 to i32
  %n6 = llvm.trunc %bytes : i64 to i32
  %result = llvm.call %call(%function, %n0, %n1, %n2, %n3, %n4, %n5, %n6, %stream, %places, %null)
    : !llvm.ptr, (!llvm.ptr, i32, i32, i32, i32, i32, i32, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  %launched = llvm.icmp "eq" %result, %good : i32
  llvm.cond_br %launched, ^end, ^failed
^failed:
${notes}
  llvm.call @__relayc_note(%words, %result, %kernel) : (!llvm.ptr, i32, i64) -> ()
  llvm.br ^end
^end:
  llvm.return
}

// The element of so many bytes at an address of the device; 0 where something has failed.
llvm.func internal @__relayc_read(%context: i64, %address: i64, %bytes: i64) -> i64 attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %good = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %what = llvm.mlir.constant(${read_failed} : i64) : i64
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %place = llvm.alloca %one x i64 : (i32) -> !llvm.ptr
  llvm.store %zero, %place : i64, !llvm.ptr
  %0 = llvm.getelementptr %words[${status}] : (!llvm.ptr) -> !llvm.ptr, i64
  %before = llvm.load %0 : !llvm.ptr -> i64
  %goes_on = llvm.icmp "eq" %before, %zero : i64
  llvm.cond_br %goes_on, ^copy, ^end(%zero : i64)
^copy:
  %1 = llvm.getelementptr %words[${stream}] : (!llvm.ptr) -> !llvm.ptr, i64
  %stream = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %2 = llvm.getelementptr %words[${copy_out}] : (!llvm.ptr) -> !llvm.ptr, i64
  %copy = llvm.load %2 : !llvm.ptr -> !llvm.ptr
  %copied = llvm.call %copy(%place, %address, %bytes, %stream) : !llvm.ptr, (!llvm.ptr, i64, i64, !llvm.ptr) -> i32
  %3 = llvm.icmp "eq" %copied, %good : i32
  llvm.cond_br %3, ^wait, ^failed(%copied : i32)
^wait:
  %4 = llvm.getelementptr %words[${synchronize}] : (!llvm.ptr) -> !llvm.ptr, i64
  %wait = llvm.load %4 : !llvm.ptr -> !llvm.ptr
  %waited = llvm.call %wait(%stream) : !llvm.ptr, (!llvm.ptr) -> i32
  %5 = llvm.icmp "eq" %waited, %good : i32
  llvm.cond_br %5, ^there, ^failed(%waited : i32)
^there:
  %found = llvm.load %place : !llvm.ptr -> i64
  llvm.br ^end(%found : i64)
^failed(%result: i32):
  llvm.call @__relayc_note(%words, %result, %what) : (!llvm.ptr, i32, i64) -> ()
  llvm.br ^end(%zero : i64)
^end(%value: i64):
  llvm.return %value : i64
}

// Memory of the device; null where there is none.
llvm.func internal @__relayc_allocate(%context: i64, %bytes: i64) -> !llvm.ptr attributes {no_inline} {
  %good = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %place = llvm.alloca %one x !llvm.ptr : (i32) -> !llvm.ptr
  %0 = llvm.getelementptr %words[${stream}] : (!llvm.ptr) -> !llvm.ptr, i64
  %stream = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %1 = llvm.getelementptr %words[${allocate}] : (!llvm.ptr) -> !llvm.ptr, i64
  %allocate = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %result = llvm.call %allocate(%place, %bytes, %stream) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> i32
  %found = llvm.load %place : !llvm.ptr -> !llvm.ptr
  %2 = llvm.icmp "eq" %result, %good : i32
  %3 = llvm.select %2, %found, %null : i1, !llvm.ptr
  llvm.return %3 : !llvm.ptr
}

llvm.func internal @__relayc_release(%context: i64, %address: !llvm.ptr) attributes {no_inline} {
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[${stream}] : (!llvm.ptr) -> !llvm.ptr, i64
  %stream = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %1 = llvm.getelementptr %words[${free}] : (!llvm.ptr) -> !llvm.ptr, i64
  %free = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %2 = llvm.call %free(%address, %stream) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> i32
  llvm.return
}

// ==== map
llvm.func internal @${name}(%context: i64, %map: i64, %address: i64, ${parameters}) attributes {no_inline} {
  %good = llvm.mlir.constant(0 : i32) : i32
  %what = llvm.mlir.constant(${failed} : i64) : i64
  %type = llvm.mlir.constant(${type} : i32) : i32
  %rank = llvm.mlir.constant(${rank} : i32) : i32
  %swizzle = llvm.mlir.constant(${swizzle} : i32) : i32
  %promotion = llvm.mlir.constant(${promotion} : i32) : i32
  %sizes = llvm.alloca %rank x i64 : (i32) -> !llvm.ptr
  %strides = llvm.alloca %rank x i64 : (i32) -> !llvm.ptr
  %box = llvm.alloca %rank x i32 : (i32) -> !llvm.ptr
  %steps = llvm.alloca %rank x i32 : (i32) -> !llvm.ptr
  %lower = llvm.alloca %rank x i32 : (i32) -> !llvm.ptr
  %upper = llvm.alloca %rank x i32 : (i32) -> !llvm.ptr
${stores}
  %words = llvm.inttoptr %context : i64 to !llvm.ptr
  %0 = llvm.getelementptr %words[${encode}] : (!llvm.ptr) -> !llvm.ptr, i64
  %encode = llvm.load %0 : !llvm.ptr -> !llvm.ptr
  %result = llvm.call %encode(%map, %type, %rank, %address, %sizes, %strides, ${copied}, %steps, %good, %swizzle, %promotion, %good)
    : !llvm.ptr, (i64, i32, i32, i64, !llvm.ptr, !llvm.ptr, ${copied_types}, !llvm.ptr, i32, i32, i32, i32) -> i32
  %made = llvm.icmp "eq" %result, %good : i32
  llvm.cond_br %made, ^end, ^failed
^failed:
  llvm.call @__relayc_note(%words, %result, %what) : (!llvm.ptr, i32, i64) -> ()
  llvm.br ^end
^end:
  llvm.return
}
