// ==== declarations
llvm.func @malloc(i64) -> !llvm.ptr
llvm.func @free(!llvm.ptr)
llvm.func @TVMFFIObjectDecRef(!llvm.ptr) -> i32
llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)
llvm.func @TVMFFIFunctionCall(!llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32

// ==== inline
// Retains a word.
llvm.func internal @heap_retain(%w: i64) attributes {passthrough = ["alwaysinline"]} {
  %one = llvm.mlir.constant(1 : i64) : i64
  %bit = llvm.trunc %w : i64 to i1
  llvm.cond_br %bit, ^end, ^count
^count:
  %p = llvm.inttoptr %w : i64 to !llvm.ptr
  %old = llvm.atomicrmw add %p, %one monotonic : !llvm.ptr, i64
  llvm.br ^end
^end:
  llvm.return
}

// Releases a word; no effect on 0.
llvm.func internal @heap_release(%w: i64) attributes {passthrough = ["alwaysinline"]} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %bit = llvm.trunc %w : i64 to i1
  %none = llvm.icmp "eq" %w, %zero : i64
  %skip = llvm.or %bit, %none : i1
  llvm.cond_br %skip, ^end, ^drop
^drop:
  %links = llvm.mlir.addressof @__relayc_links : !llvm.ptr
  %drop_at = llvm.getelementptr %links[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %drop = llvm.load %drop_at : !llvm.ptr -> !llvm.ptr
  llvm.call %drop(%w) : !llvm.ptr, (i64) -> ()
  llvm.br ^end
^end:
  llvm.return
}

// Allocates a cell with uninitialized fields.
llvm.func internal @heap_new(%tag: i32, %count: i32, %info: i64) -> !llvm.ptr attributes {passthrough = ["alwaysinline"]} {
  %bytes = llvm.mlir.constant(${cell_bytes} : i64) : i64
  %eight = llvm.mlir.constant(8 : i64) : i64
  %refs = llvm.mlir.constant(4294967297 : i64) : i64
  %links = llvm.mlir.addressof @__relayc_links : !llvm.ptr
  %type = llvm.load %links : !llvm.ptr -> i64
  %deleter_at = llvm.getelementptr %links[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %deleter = llvm.load %deleter_at : !llvm.ptr -> !llvm.ptr
  %n = llvm.zext %count : i32 to i64
  %m = llvm.mul %n, %eight : i64
  %size = llvm.add %m, %bytes : i64
  %p = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
  llvm.store %refs, %p : i64, !llvm.ptr
  %p8 = llvm.getelementptr %p[8] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %type, %p8 : i64, !llvm.ptr
  %p16 = llvm.getelementptr %p[16] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %deleter, %p16 : !llvm.ptr, !llvm.ptr
  %p24 = llvm.getelementptr %p[24] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %tag, %p24 : i32, !llvm.ptr
  %p28 = llvm.getelementptr %p[28] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %count, %p28 : i32, !llvm.ptr
  %p32 = llvm.getelementptr %p[32] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %info, %p32 : i64, !llvm.ptr
  llvm.return %p : !llvm.ptr
}

// The tag of a value.
llvm.func internal @heap_tag(%w: i64) -> i32 attributes {passthrough = ["alwaysinline"]} {
  %bit = llvm.trunc %w : i64 to i1
  llvm.cond_br %bit, ^immediate, ^cell
^immediate:
  %eight = llvm.mlir.constant(8 : i64) : i64
  %mask = llvm.mlir.constant(16777215 : i32) : i32
  %high = llvm.lshr %w, %eight : i64
  %low = llvm.trunc %high : i64 to i32
  %own = llvm.and %low, %mask : i32
  llvm.return %own : i32
^cell:
  %p = llvm.inttoptr %w : i64 to !llvm.ptr
  %p24 = llvm.getelementptr %p[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %tag = llvm.load %p24 : !llvm.ptr -> i32
  llvm.return %tag : i32
}

// A field of a cell, retained.
llvm.func internal @heap_field(%w: i64, %i: i64) -> i64 attributes {passthrough = ["alwaysinline"]} {
  %p = llvm.inttoptr %w : i64 to !llvm.ptr
  %fields = llvm.getelementptr %p[${cell_bytes}] : (!llvm.ptr) -> !llvm.ptr, i8
  %place = llvm.getelementptr %fields[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %field = llvm.load %place : !llvm.ptr -> i64
  llvm.call @heap_retain(%field) : (i64) -> ()
  llvm.return %field : i64
}

// Converts a value of tvm-ffi to a word; moves its reference.
llvm.func internal @heap_from_any(%any: !llvm.ptr) -> i64 {
  %kind = llvm.load %any : !llvm.ptr -> i32
  %at = llvm.getelementptr %any[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %bits = llvm.load %at : !llvm.ptr -> i64
  %shift = llvm.mlir.constant(32 : i64) : i64
  %high = llvm.shl %bits, %shift : i64
  llvm.switch %kind : i32, ^object [1: ^int, 2: ^bool, 3: ^float]
^int:
  %int = llvm.mlir.constant(3 : i64) : i64
  %int_word = llvm.or %high, %int : i64
  llvm.return %int_word : i64
^bool:
  %bool = llvm.mlir.constant(7 : i64) : i64
  %bool_word = llvm.or %high, %bool : i64
  llvm.return %bool_word : i64
^float:
  %float = llvm.mlir.constant(5 : i64) : i64
  %double = llvm.bitcast %bits : i64 to f64
  %single = llvm.fptrunc %double : f64 to f32
  %single_bits = llvm.bitcast %single : f32 to i32
  %wide = llvm.zext %single_bits : i32 to i64
  %moved = llvm.shl %wide, %shift : i64
  %float_word = llvm.or %moved, %float : i64
  llvm.return %float_word : i64
^object:
  llvm.return %bits : i64
}

// Converts a word to a value of tvm-ffi; a constructor without fields becomes a new cell.
llvm.func internal @heap_to_any(%w: i64, %any: !llvm.ptr) {
  %at = llvm.getelementptr %any[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %bit = llvm.trunc %w : i64 to i1
  llvm.cond_br %bit, ^immediate, ^object
^object:
  %p = llvm.inttoptr %w : i64 to !llvm.ptr
  %p8 = llvm.getelementptr %p[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %type = llvm.load %p8 : !llvm.ptr -> i32
  %wide_type = llvm.zext %type : i32 to i64
  llvm.store %wide_type, %any : i64, !llvm.ptr
  llvm.store %w, %at : i64, !llvm.ptr
  llvm.return
^immediate:
  %shift = llvm.mlir.constant(32 : i64) : i64
  %mask = llvm.mlir.constant(127 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %high = llvm.lshr %w, %shift : i64
  %value = llvm.trunc %high : i64 to i32
  %kinds = llvm.lshr %w, %one : i64
  %kind = llvm.and %kinds, %mask : i64
  %small = llvm.trunc %kind : i64 to i32
  llvm.switch %small : i32, ^constructor [1: ^int, 2: ^float, 3: ^bool]
^int:
  %int_kind = llvm.mlir.constant(1 : i64) : i64
  %int = llvm.sext %value : i32 to i64
  llvm.store %int_kind, %any : i64, !llvm.ptr
  llvm.store %int, %at : i64, !llvm.ptr
  llvm.return
^bool:
  %bool_kind = llvm.mlir.constant(2 : i64) : i64
  llvm.store %bool_kind, %any : i64, !llvm.ptr
  llvm.store %high, %at : i64, !llvm.ptr
  llvm.return
^float:
  %float_kind = llvm.mlir.constant(3 : i64) : i64
  %single = llvm.bitcast %value : i32 to f32
  %double = llvm.fpext %single : f32 to f64
  llvm.store %float_kind, %any : i64, !llvm.ptr
  llvm.store %double, %at : f64, !llvm.ptr
  llvm.return
^constructor:
  %none = llvm.mlir.constant(0 : i32) : i32
  %tag = llvm.call @heap_tag(%w) : (i64) -> i32
  %cell = llvm.call @heap_new(%tag, %none, %high) : (i32, i32, i64) -> !llvm.ptr
  %links = llvm.mlir.addressof @__relayc_links : !llvm.ptr
  %cell_kind = llvm.load %links : !llvm.ptr -> i64
  llvm.store %cell_kind, %any : i64, !llvm.ptr
  llvm.store %cell, %at : !llvm.ptr, !llvm.ptr
  llvm.return
}

// ==== code
// Frees an unreferenced cell, and the cells that only it refers to.
llvm.func internal @heap_end(%cell: !llvm.ptr) {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %one32 = llvm.mlir.constant(1 : i32) : i32
  %links = llvm.mlir.addressof @__relayc_links : !llvm.ptr
  %cell_type = llvm.load %links : !llvm.ptr -> i32
  %null = llvm.mlir.zero : !llvm.ptr
  llvm.br ^cell(%cell, %null : !llvm.ptr, !llvm.ptr)
^cell(%p: !llvm.ptr, %rest: !llvm.ptr):
  %p28 = llvm.getelementptr %p[28] : (!llvm.ptr) -> !llvm.ptr, i8
  %n32 = llvm.load %p28 : !llvm.ptr -> i32
  %n = llvm.zext %n32 : i32 to i64
  %fields = llvm.getelementptr %p[${cell_bytes}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.br ^field(%zero, %rest : i64, !llvm.ptr)
^field(%i: i64, %list: !llvm.ptr):
  %done = llvm.icmp "eq" %i, %n : i64
  llvm.cond_br %done, ^free, ^read
^read:
  %place = llvm.getelementptr %fields[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %w = llvm.load %place : !llvm.ptr -> i64
  %next = llvm.add %i, %one : i64
  %bit = llvm.trunc %w : i64 to i1
  %none = llvm.icmp "eq" %w, %zero : i64
  %skip = llvm.or %bit, %none : i1
  llvm.cond_br %skip, ^field(%next, %list : i64, !llvm.ptr), ^object
^object:
  %q = llvm.inttoptr %w : i64 to !llvm.ptr
  %q8 = llvm.getelementptr %q[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %type = llvm.load %q8 : !llvm.ptr -> i32
  %is_cell = llvm.icmp "eq" %type, %cell_type : i32
  llvm.cond_br %is_cell, ^count, ^other
^other:
  %status = llvm.call @TVMFFIObjectDecRef(%q) : (!llvm.ptr) -> i32
  llvm.br ^field(%next, %list : i64, !llvm.ptr)
^count:
  %old = llvm.atomicrmw sub %q, %one acq_rel : !llvm.ptr, i64
  %strong = llvm.trunc %old : i64 to i32
  %last = llvm.icmp "eq" %strong, %one32 : i32
  llvm.cond_br %last, ^put, ^field(%next, %list : i64, !llvm.ptr)
^put:
  // The list is linked through the field of the deleter.
  %link = llvm.getelementptr %q[16] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %list, %link : !llvm.ptr, !llvm.ptr
  llvm.br ^field(%next, %q : i64, !llvm.ptr)
^free:
  llvm.call @free(%p) : (!llvm.ptr) -> ()
  %ended = llvm.icmp "eq" %list, %null : !llvm.ptr
  llvm.cond_br %ended, ^end, ^pop
^pop:
  %after = llvm.getelementptr %list[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %others = llvm.load %after : !llvm.ptr -> !llvm.ptr
  llvm.br ^cell(%list, %others : !llvm.ptr, !llvm.ptr)
^end:
  llvm.return
}

llvm.func internal @__relayc_heap_drop(%w: i64) {
  %one = llvm.mlir.constant(1 : i64) : i64
  %one32 = llvm.mlir.constant(1 : i32) : i32
  %links = llvm.mlir.addressof @__relayc_links : !llvm.ptr
  %cell_type = llvm.load %links : !llvm.ptr -> i32
  %p = llvm.inttoptr %w : i64 to !llvm.ptr
  %p8 = llvm.getelementptr %p[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %type = llvm.load %p8 : !llvm.ptr -> i32
  %is_cell = llvm.icmp "eq" %type, %cell_type : i32
  llvm.cond_br %is_cell, ^count, ^other
^other:
  %status = llvm.call @TVMFFIObjectDecRef(%p) : (!llvm.ptr) -> i32
  llvm.return
^count:
  %old = llvm.atomicrmw sub %p, %one acq_rel : !llvm.ptr, i64
  %strong = llvm.trunc %old : i64 to i32
  %last = llvm.icmp "eq" %strong, %one32 : i32
  llvm.cond_br %last, ^gone, ^end
^gone:
  llvm.call @heap_end(%p) : (!llvm.ptr) -> ()
  llvm.return
^end:
  llvm.return
}

llvm.func internal @__relayc_heap_deleter(%p: !llvm.ptr, %flags: i32) {
  llvm.call @heap_end(%p) : (!llvm.ptr) -> ()
  llvm.return
}

// Packed functions: make(info, tag, fields...); for a cell: tag, count, info, field(cell, i), set(cell, value) for the first field.
llvm.func internal @__relayc_heap_make(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %two = llvm.mlir.constant(2 : i32) : i32
  %a0 = llvm.getelementptr %args[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %a1 = llvm.getelementptr %args[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %info = llvm.load %a0 : !llvm.ptr -> i64
  %tag64 = llvm.load %a1 : !llvm.ptr -> i64
  %tag = llvm.trunc %tag64 : i64 to i32
  %count = llvm.sub %n, %two : i32
  %p = llvm.call @heap_new(%tag, %count, %info) : (i32, i32, i64) -> !llvm.ptr
  %fields = llvm.getelementptr %p[${cell_bytes}] : (!llvm.ptr) -> !llvm.ptr, i8
  %values = llvm.getelementptr %args[32] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.br ^loop(%zero : i32)
^loop(%i: i32):
  %done = llvm.icmp "eq" %i, %count : i32
  llvm.cond_br %done, ^end, ^store
^store:
  %offset = llvm.shl %i, %one : i32
  %any = llvm.getelementptr %values[%offset] : (!llvm.ptr, i32) -> !llvm.ptr, i64
  %w = llvm.call @heap_from_any(%any) : (!llvm.ptr) -> i64
  llvm.call @heap_retain(%w) : (i64) -> ()
  %place = llvm.getelementptr %fields[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i64
  llvm.store %w, %place : i64, !llvm.ptr
  %next = llvm.add %i, %one : i32
  llvm.br ^loop(%next : i32)
^end:
  %word = llvm.ptrtoint %p : !llvm.ptr to i64
  llvm.call @heap_to_any(%word, %result) : (i64, !llvm.ptr) -> ()
  llvm.return %zero : i32
}
${readers}
llvm.func internal @__relayc_heap_field(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %a0 = llvm.getelementptr %args[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %a1 = llvm.getelementptr %args[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %cell = llvm.load %a0 : !llvm.ptr -> i64
  %i = llvm.load %a1 : !llvm.ptr -> i64
  %w = llvm.call @heap_field(%cell, %i) : (i64, i64) -> i64
  llvm.call @heap_to_any(%w, %result) : (i64, !llvm.ptr) -> ()
  llvm.return %zero : i32
}


llvm.func internal @__relayc_heap_set(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %a0 = llvm.getelementptr %args[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %cell = llvm.load %a0 : !llvm.ptr -> !llvm.ptr
  %any = llvm.getelementptr %args[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %w = llvm.call @heap_from_any(%any) : (!llvm.ptr) -> i64
  llvm.call @heap_retain(%w) : (i64) -> ()
  %place = llvm.getelementptr %cell[${cell_bytes}] : (!llvm.ptr) -> !llvm.ptr, i8
  %old = llvm.load %place : !llvm.ptr -> i64
  llvm.store %w, %place : i64, !llvm.ptr
  llvm.call @heap_release(%old) : (i64) -> ()
  llvm.return %zero : i32
}

// ==== reader
llvm.func internal @__relayc_heap_${name}(%self: !llvm.ptr, %args: !llvm.ptr, %n: i32, %result: !llvm.ptr) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %kind = llvm.mlir.constant(1 : i64) : i64
  %a0 = llvm.getelementptr %args[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %p = llvm.load %a0 : !llvm.ptr -> !llvm.ptr
  %at = llvm.getelementptr %p[${offset}] : (!llvm.ptr) -> !llvm.ptr, i8
  %found = llvm.load %at : !llvm.ptr -> ${type}
  ${widened}
  llvm.store %kind, %result : i64, !llvm.ptr
  %r8 = llvm.getelementptr %result[8] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.store %${value}, %r8 : i64, !llvm.ptr
  llvm.return %zero : i32
}
