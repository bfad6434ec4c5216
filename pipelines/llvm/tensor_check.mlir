// ==== check
llvm.func @snprintf(!llvm.ptr, i64, !llvm.ptr, ...) -> i32
llvm.func @TVMFFIErrorSetRaisedFromCStr(!llvm.ptr, !llvm.ptr)

// Raises an error of a kind: "FUNCTION: argument I 'NAME': expected TYPE, found WHAT".
llvm.func internal @__relayc_raise(%kind: !llvm.ptr, %entry: !llvm.ptr, %i: i32, %row: !llvm.ptr, %what: !llvm.ptr,
                                   %strings: !llvm.ptr) -> i32
    attributes {no_inline, passthrough = ["cold", "minsize", "optsize"]} {
  %size = llvm.mlir.constant(1024 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %messages = llvm.mlir.addressof @__relayc_messages : !llvm.ptr
  %0 = llvm.getelementptr %entry[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %1 = llvm.load %0 : !llvm.ptr -> i64
  %function = llvm.getelementptr %strings[%1] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %2 = llvm.load %row : !llvm.ptr -> i64
  %name = llvm.getelementptr %strings[%2] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %3 = llvm.getelementptr %row[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %4 = llvm.load %3 : !llvm.ptr -> i64
  %type = llvm.getelementptr %strings[%4] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %format = llvm.getelementptr %messages[${argument}] : (!llvm.ptr) -> !llvm.ptr, i8
  %5 = llvm.call @snprintf(%message, %size, %format, %function, %i, %name, %type, %what)
    vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%kind, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  %failed = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %failed : i32
}

// Raises an error about a tensor, which it describes as "float32[1, 3]".
llvm.func internal @__relayc_raise_tensor(%kind: !llvm.ptr, %entry: !llvm.ptr, %i: i32, %row: !llvm.ptr, %tensor: !llvm.ptr,
                                          %note: !llvm.ptr, %strings: !llvm.ptr) -> i32
    attributes {no_inline, passthrough = ["cold", "minsize", "optsize"]} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %size = llvm.mlir.constant(512 : i64) : i64
  %limit = llvm.mlir.constant(400 : i32) : i32
  %what = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %messages = llvm.mlir.addressof @__relayc_messages : !llvm.ptr
  %codes = llvm.mlir.constant(${num_codes} : i8) : i8
  %unknown = llvm.mlir.constant(${num_codes} : i64) : i64
  %0 = llvm.getelementptr %tensor[20] : (!llvm.ptr) -> !llvm.ptr, i8
  %code = llvm.load %0 : !llvm.ptr -> i8
  %known = llvm.icmp "ult" %code, %codes : i8
  %1 = llvm.zext %code : i8 to i64
  %index = llvm.select %known, %1, %unknown : i1, i64
  %names = llvm.mlir.addressof @__relayc_dtypes : !llvm.ptr
  %2 = llvm.getelementptr %names[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %3 = llvm.load %2 : !llvm.ptr -> i64
  %dtype = llvm.getelementptr %messages[%3] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %4 = llvm.getelementptr %tensor[21] : (!llvm.ptr) -> !llvm.ptr, i8
  %5 = llvm.load %4 : !llvm.ptr -> i8
  %bits = llvm.zext %5 : i8 to i32
  %start = llvm.call @snprintf(%what, %size, %dtype, %bits) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, i32) -> i32
  %6 = llvm.getelementptr %tensor[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %rank = llvm.load %6 : !llvm.ptr -> i32
  %7 = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %shape = llvm.load %7 : !llvm.ptr -> !llvm.ptr
  llvm.br ^next(%zero, %start : i32, i32)
^next(%d: i32, %at: i32):
  %more = llvm.icmp "slt" %d, %rank : i32
  %room = llvm.icmp "slt" %at, %limit : i32
  %go = llvm.and %more, %room : i1
  llvm.cond_br %go, ^dimension, ^close
^dimension:
  %8 = llvm.getelementptr %shape[%d] : (!llvm.ptr, i32) -> !llvm.ptr, i64
  %dim = llvm.load %8 : !llvm.ptr -> i64
  %9 = llvm.getelementptr %what[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %first = llvm.icmp "eq" %d, %zero : i32
  %10 = llvm.getelementptr %messages[${first_dim}] : (!llvm.ptr) -> !llvm.ptr, i8
  %11 = llvm.getelementptr %messages[${next_dim}] : (!llvm.ptr) -> !llvm.ptr, i8
  %12 = llvm.select %first, %10, %11 : i1, !llvm.ptr
  %13 = llvm.call @snprintf(%9, %size, %12, %dim) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, i64) -> i32
  %14 = llvm.add %at, %13 : i32
  %15 = llvm.add %d, %one : i32
  llvm.br ^next(%15, %14 : i32, i32)
^close:
  %16 = llvm.getelementptr %what[%at] : (!llvm.ptr, i32) -> !llvm.ptr, i8
  %scalar = llvm.icmp "eq" %rank, %zero : i32
  %17 = llvm.getelementptr %messages[${close_scalar}] : (!llvm.ptr) -> !llvm.ptr, i8
  %18 = llvm.getelementptr %messages[${close}] : (!llvm.ptr) -> !llvm.ptr, i8
  %19 = llvm.select %scalar, %17, %18 : i1, !llvm.ptr
  %20 = llvm.call @snprintf(%16, %size, %19, %note) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr) -> i32
  %21 = llvm.call @__relayc_raise(%kind, %entry, %i, %row, %what, %strings)
    : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.return %21 : i32
}

// Checks the tensors of an entry and writes their data pointers to `data`, followed by pointers to their DLTensors. Returns 0, or -1
// with an error raised.
llvm.func internal @__relayc_check(%entry: !llvm.ptr, %args: !llvm.ptr, %n: i32, %data: !llvm.ptr, %strings: !llvm.ptr) -> i32
    attributes {no_inline, passthrough = ["optsize"]} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %zero64 = llvm.mlir.constant(0 : i64) : i64
  %one64 = llvm.mlir.constant(1 : i64) : i64
  %device_type = llvm.mlir.constant(${device_type} : i32) : i32
  %pointer_kind = llvm.mlir.constant(7 : i32) : i32
  %object_kind = llvm.mlir.constant(70 : i32) : i32
  %null = llvm.mlir.zero : !llvm.ptr
  %messages = llvm.mlir.addressof @__relayc_messages : !llvm.ptr
  %type_error = llvm.getelementptr %messages[${type_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %value_error = llvm.getelementptr %messages[${value_error}] : (!llvm.ptr) -> !llvm.ptr, i8
  %nothing = llvm.getelementptr %messages[${nothing}] : (!llvm.ptr) -> !llvm.ptr, i8
  %0 = llvm.load %entry : !llvm.ptr -> i64
  %count = llvm.trunc %0 : i64 to i32
  %1 = llvm.icmp "eq" %count, %n : i32
  %first_row = llvm.getelementptr %entry[3] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.cond_br %1, ^next(%zero, %first_row : i32, !llvm.ptr), ^bad_count
^bad_count:
  %size = llvm.mlir.constant(512 : i64) : i64
  %message = llvm.alloca %size x i8 : (i64) -> !llvm.ptr
  %2 = llvm.getelementptr %entry[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %3 = llvm.load %2 : !llvm.ptr -> i64
  %function = llvm.getelementptr %strings[%3] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %format = llvm.getelementptr %messages[${count}] : (!llvm.ptr) -> !llvm.ptr, i8
  %names_at = llvm.getelementptr %entry[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %names_offset = llvm.load %names_at : !llvm.ptr -> i64
  %names = llvm.getelementptr %strings[%names_offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %4 = llvm.call @snprintf(%message, %size, %format, %function, %count, %n, %names) vararg(!llvm.func<i32 (ptr, i64, ptr, ...)>)
    : (!llvm.ptr, i64, !llvm.ptr, !llvm.ptr, i32, i32, !llvm.ptr) -> i32
  llvm.call @TVMFFIErrorSetRaisedFromCStr(%type_error, %message) : (!llvm.ptr, !llvm.ptr) -> ()
  %failed = llvm.mlir.constant(-1 : i32) : i32
  llvm.return %failed : i32
^next(%i: i32, %row: !llvm.ptr):
  %5 = llvm.icmp "slt" %i, %n : i32
  llvm.cond_br %5, ^argument, ^done
^done:
  llvm.return %zero : i32

^argument:
  %any = llvm.getelementptr %args[%i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.struct<(i32, i32, i64)>
  %kind = llvm.load %any : !llvm.ptr -> i32
  %6 = llvm.getelementptr %any[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %value = llvm.load %6 : !llvm.ptr -> !llvm.ptr
  %7 = llvm.icmp "eq" %kind, %object_kind : i32
  llvm.cond_br %7, ^object, ^pointer
^object:
  %8 = llvm.getelementptr %value[24] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.br ^tensor(%8 : !llvm.ptr)
^pointer:
  %9 = llvm.icmp "eq" %kind, %pointer_kind : i32
  llvm.cond_br %9, ^tensor(%value : !llvm.ptr), ^bad_kind
^bad_kind:
  %10 = llvm.getelementptr %messages[${no_tensor}] : (!llvm.ptr) -> !llvm.ptr, i8
  %11 = llvm.call @__relayc_raise(%type_error, %entry, %i, %row, %10, %strings)
    : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.return %11 : i32

^tensor(%tensor: !llvm.ptr):
  %12 = llvm.getelementptr %tensor[20] : (!llvm.ptr) -> !llvm.ptr, i8
  %13 = llvm.load %12 : !llvm.ptr -> i32
  %14 = llvm.getelementptr %row[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %15 = llvm.load %14 : !llvm.ptr -> i64
  %dtype = llvm.trunc %15 : i64 to i32
  %16 = llvm.icmp "eq" %13, %dtype : i32
  llvm.cond_br %16, ^rank, ^raise(%type_error, %nothing : !llvm.ptr, !llvm.ptr)
^rank:
  %17 = llvm.getelementptr %tensor[16] : (!llvm.ptr) -> !llvm.ptr, i8
  %18 = llvm.load %17 : !llvm.ptr -> i32
  %19 = llvm.getelementptr %row[3] : (!llvm.ptr) -> !llvm.ptr, i64
  %rank = llvm.load %19 : !llvm.ptr -> i64
  %20 = llvm.sext %18 : i32 to i64
  %21 = llvm.icmp "eq" %20, %rank : i64
  llvm.cond_br %21, ^dimensions, ^raise(%value_error, %nothing : !llvm.ptr, !llvm.ptr)
^dimensions:
  %22 = llvm.getelementptr %tensor[24] : (!llvm.ptr) -> !llvm.ptr, i8
  %shape = llvm.load %22 : !llvm.ptr -> !llvm.ptr
  %dims = llvm.getelementptr %row[5] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.br ^next_dimension(%zero64, %one64 : i64, i64)
^next_dimension(%d: i64, %smallest: i64):
  %23 = llvm.icmp "slt" %d, %rank : i64
  llvm.cond_br %23, ^dimension, ^device
^dimension:
  %24 = llvm.getelementptr %shape[%d] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %25 = llvm.load %24 : !llvm.ptr -> i64
  %26 = llvm.getelementptr %dims[%d] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %27 = llvm.load %26 : !llvm.ptr -> i64
  %28 = llvm.icmp "eq" %25, %27 : i64
  %minus_one = llvm.mlir.constant(-1 : i64) : i64
  %open = llvm.icmp "slt" %27, %zero64 : i64
  %least = llvm.xor %27, %minus_one : i64
  %enough = llvm.icmp "sge" %25, %least : i64
  %fits = llvm.and %open, %enough : i1
  %good = llvm.or %28, %fits : i1
  %29 = llvm.add %d, %one64 : i64
  %smaller = llvm.intr.smin(%smallest, %25) : (i64, i64) -> i64
  llvm.cond_br %good, ^next_dimension(%29, %smaller : i64, i64), ^raise(%value_error, %nothing : !llvm.ptr, !llvm.ptr)
^device:
  %30 = llvm.getelementptr %tensor[8] : (!llvm.ptr) -> !llvm.ptr, i8
  %31 = llvm.load %30 : !llvm.ptr -> i32
  %32 = llvm.icmp "eq" %31, %device_type : i32
  %other_device = llvm.getelementptr %messages[${other_device}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.cond_br %32, ^layout, ^raise(%value_error, %other_device : !llvm.ptr, !llvm.ptr)
^layout:
  %33 = llvm.getelementptr %tensor[32] : (!llvm.ptr) -> !llvm.ptr, i8
  %strides = llvm.load %33 : !llvm.ptr -> !llvm.ptr
  %none = llvm.icmp "eq" %strides, %null : !llvm.ptr
  // The strides of an empty tensor are irrelevant.
  %empty = llvm.icmp "eq" %smallest, %zero64 : i64
  %34 = llvm.or %none, %empty : i1
  %35 = llvm.getelementptr %row[4] : (!llvm.ptr) -> !llvm.ptr, i64
  %strided = llvm.load %35 : !llvm.ptr -> i64
  llvm.cond_br %34, ^accept, ^next_stride(%strided, %one64 : i64, i64)
^next_stride(%left: i64, %expected: i64):
  %36 = llvm.icmp "sgt" %left, %zero64 : i64
  llvm.cond_br %36, ^stride, ^accept
^stride:
  %37 = llvm.sub %left, %one64 : i64
  %38 = llvm.getelementptr %shape[%37] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %39 = llvm.load %38 : !llvm.ptr -> i64
  %40 = llvm.getelementptr %strides[%37] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %41 = llvm.load %40 : !llvm.ptr -> i64
  %42 = llvm.icmp "eq" %41, %expected : i64
  %43 = llvm.icmp "eq" %39, %one64 : i64
  %44 = llvm.or %42, %43 : i1
  %45 = llvm.mul %expected, %39 : i64
  %gaps = llvm.getelementptr %messages[${gaps}] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.cond_br %44, ^next_stride(%37, %45 : i64, i64), ^raise(%value_error, %gaps : !llvm.ptr, !llvm.ptr)

^accept:
  %46 = llvm.load %tensor : !llvm.ptr -> !llvm.ptr
  %47 = llvm.getelementptr %tensor[40] : (!llvm.ptr) -> !llvm.ptr, i8
  %48 = llvm.load %47 : !llvm.ptr -> i64
  %address = llvm.getelementptr %46[%48] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %49 = llvm.getelementptr %data[%i] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.ptr
  llvm.store %address, %49 : !llvm.ptr, !llvm.ptr
  %behind = llvm.add %i, %n : i32
  %place = llvm.getelementptr %data[%behind] : (!llvm.ptr, i32) -> !llvm.ptr, !llvm.ptr
  llvm.store %tensor, %place : !llvm.ptr, !llvm.ptr
  %50 = llvm.add %i, %one : i32
  %next_row = llvm.getelementptr %dims[%rank] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  llvm.br ^next(%50, %next_row : i32, !llvm.ptr)

^raise(%error: !llvm.ptr, %note: !llvm.ptr):
  %51 = llvm.call @__relayc_raise_tensor(%error, %entry, %i, %row, %tensor, %note, %strings)
    : (!llvm.ptr, !llvm.ptr, i32, !llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
  llvm.return %51 : i32
}
