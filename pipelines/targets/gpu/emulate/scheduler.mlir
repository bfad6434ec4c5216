// ==== common
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c8 = arith.constant 8 : i64
  %c32 = arith.constant 32 : i64
  %states = arith.constant ${states} : i64
  %false = arith.constant false
  %true = arith.constant true

// ==== text
// Notes what has gone wrong, where nothing has before.
func.func private @${fail}(%record: !llvm.ptr, %what: i64, %base: !llvm.ptr, %t0: i64, %site0: i64, %t1: i64, %site1: i64, %more: i64)
    attributes {no_inline} {
  %c0 = arith.constant 0 : i64
  %old = llvm.cmpxchg %record, %c0, %what acq_rel monotonic : !llvm.ptr, i64
  %first = llvm.extractvalue %old[1] : !llvm.struct<(i64, i1)>
  scf.if %first {
    %p = llvm.getelementptr %base[${block_id}] : (!llvm.ptr) -> !llvm.ptr, i8
    %block = llvm.load %p : !llvm.ptr -> i64
    %p1 = llvm.getelementptr %record[1] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %block, %p1 : i64, !llvm.ptr
    %p2 = llvm.getelementptr %record[2] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %t0, %p2 : i64, !llvm.ptr
    %p3 = llvm.getelementptr %record[3] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %site0, %p3 : i64, !llvm.ptr
    %p4 = llvm.getelementptr %record[4] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %t1, %p4 : i64, !llvm.ptr
    %p5 = llvm.getelementptr %record[5] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %site1, %p5 : i64, !llvm.ptr
    %p6 = llvm.getelementptr %record[6] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %more, %p6 : i64, !llvm.ptr
  }
  return
}

// Runs the threads of a warp that are ready, in order. Gives whether one of them had not been polling.
func.func private @__relayc_gpu.resume(%base: !llvm.ptr, %first: i64, %end: i64) -> i1 {${common}
  %ran = scf.for %t = %first to %end step %c1 iter_args(%some = %false) -> (i1) : i64 {
    %o = arith.muli %t, %c8 : i64
    %record = llvm.getelementptr %base[%o] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %p = llvm.getelementptr %record[${wait}] : (!llvm.ptr) -> !llvm.ptr, i8
    %wait = llvm.load %p : !llvm.ptr -> i64
    %go = arith.cmpi ule, %wait, %c1 : i64
    scf.if %go {
      %q = llvm.getelementptr %record[${handle}] : (!llvm.ptr) -> !llvm.ptr, i8
      %handle = llvm.load %q : !llvm.ptr -> !llvm.ptr
      "llvm.intr.coro.resume"(%handle) : (!llvm.ptr) -> ()
    }
    %ready = arith.cmpi eq, %wait, %c0 : i64
    %any = arith.ori %some, %ready : i1
    scf.yield %any : i1
  }
  return %ran : i1
}

// Lets lanes go that all wait for each other, at the same operation. Gives whether there were any.
func.func private @__relayc_gpu.release_lanes(%base: !llvm.ptr, %first: i64, %end: i64) -> i1 {${common}
  %warp = arith.constant ${warp} : i64
  %orders = arith.constant ${orders} : i64
  %c5 = arith.constant 5 : i64
  %c6 = arith.constant 6 : i64
  %o0 = arith.muli %first, %c8 : i64
  %record = llvm.getelementptr %base[%o0] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %waits = llvm.getelementptr %record[${wait}] : (!llvm.ptr) -> !llvm.ptr, i8
  %groups = llvm.getelementptr %record[${group}] : (!llvm.ptr) -> !llvm.ptr, i8
  %half_words = llvm.getelementptr %record[${half}] : (!llvm.ptr) -> !llvm.ptr, i8
  %lanes = arith.subi %end, %first : i64
  %released = scf.for %l = %c0 to %lanes step %c1 iter_args(%some = %false) -> (i1) : i64 {
    %p = llvm.getelementptr %waits[%l] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %wait = llvm.load %p : !llvm.ptr -> i64
    %state = arith.andi %wait, %states : i64
    %is = arith.cmpi eq, %state, %warp : i64
    // A group is looked at once: by the first of its lanes.
    %q = llvm.getelementptr %groups[%l] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %mask = llvm.load %q : !llvm.ptr -> i64
    %bit = arith.shli %c1, %l : i64
    %below0 = arith.subi %bit, %c1 : i64
    %below = arith.andi %mask, %below0 : i64
    %lowest = arith.cmpi eq, %below, %c0 : i64
    %own0 = arith.andi %mask, %bit : i64
    %own = arith.cmpi ne, %own0, %c0 : i64
    %leads0 = arith.andi %is, %lowest : i1
    %leads = arith.andi %leads0, %own : i1
    %gone = scf.if %leads -> (i1) {
      %all, %halves = scf.for %m = %c0 to %lanes step %c1 iter_args(%a = %true, %h = %c0) -> (i1, i64) : i64 {
        %r0 = arith.shrui %mask, %m : i64
        %r1 = arith.andi %r0, %c1 : i64
        %out = arith.cmpi eq, %r1, %c0 : i64
        %p1 = llvm.getelementptr %waits[%m] : (!llvm.ptr, i64) -> !llvm.ptr, i64
        %w1 = llvm.load %p1 : !llvm.ptr -> i64
        %q1 = llvm.getelementptr %groups[%m] : (!llvm.ptr, i64) -> !llvm.ptr, i64
        %g1 = llvm.load %q1 : !llvm.ptr -> i64
        %e0 = arith.cmpi eq, %w1, %wait : i64
        %e1 = arith.cmpi eq, %g1, %mask : i64
        %e = arith.andi %e0, %e1 : i1
        %ok = arith.ori %out, %e : i1
        %a1 = arith.andi %a, %ok : i1
        %p2 = llvm.getelementptr %half_words[%m] : (!llvm.ptr, i64) -> !llvm.ptr, i64
        %next = llvm.load %p2 : !llvm.ptr -> i64
        %last = arith.xori %next, %c1 : i64
        %s = arith.shli %last, %m : i64
        %h1 = arith.ori %h, %s : i64
        scf.yield %a1, %h1 : i1, i64
      }
      scf.if %all {
        %o1 = arith.andi %wait, %orders : i64
        %o2 = arith.shrui %o1, %c6 : i64
        %o3 = arith.shrui %first, %c5 : i64
        %o4 = arith.muli %o3, %c8 : i64
        %p3 = llvm.getelementptr %base[%o4] : (!llvm.ptr, i64) -> !llvm.ptr, i8
        %p4 = llvm.getelementptr %p3[${warp_epochs}] : (!llvm.ptr) -> !llvm.ptr, i8
        %epoch = llvm.load %p4 : !llvm.ptr -> i64
        %anew = arith.addi %epoch, %o2 : i64
        llvm.store %anew, %p4 : i64, !llvm.ptr
        scf.for %m = %c0 to %lanes step %c1 : i64 {
          %r0 = arith.shrui %mask, %m : i64
          %r1 = arith.andi %r0, %c1 : i64
          %in = arith.cmpi ne, %r1, %c0 : i64
          scf.if %in {
            %p1 = llvm.getelementptr %waits[%m] : (!llvm.ptr, i64) -> !llvm.ptr, i64
            llvm.store %c0, %p1 : i64, !llvm.ptr
            %q1 = llvm.getelementptr %groups[%m] : (!llvm.ptr, i64) -> !llvm.ptr, i64
            llvm.store %halves, %q1 : i64, !llvm.ptr
          }
        }
      }
      scf.yield %all : i1
    } else {
      scf.yield %false : i1
    }
    %any = arith.ori %some, %gone : i1
    scf.yield %any : i1
  }
  return %released : i1
}

// Runs the threads of a warp until they wait for more than each other. Gives whether one of them went on.
func.func private @${warp_function}(%base: !llvm.ptr, %first: i64, %end: i64) -> i1 {
  %false = arith.constant false
  %some = scf.while (%before = %false) : (i1) -> i1 {
    %ready = func.call @__relayc_gpu.resume(%base, %first, %end) : (!llvm.ptr, i64, i64) -> i1
    %released = func.call @__relayc_gpu.release_lanes(%base, %first, %end) : (!llvm.ptr, i64, i64) -> i1
    %a = arith.ori %before, %ready : i1
    %b = arith.ori %a, %released : i1
    scf.condition(%released) %b : i1
  } do {
  ^bb0(%before: i1):
    scf.yield %before : i1
  }
  return %some : i1
}

// Lets the threads go that wait at barriers to which all have come. Gives whether there were any.
func.func private @__relayc_gpu.release_barriers(%base: !llvm.ptr, %threads: i64, %failures: !llvm.ptr) -> i1 {${common}
  %count = arith.constant ${barrier_count} : i64
  %c16 = arith.constant 16 : i64
  %barrier = arith.constant ${barrier} : i64
  %uniform = arith.constant ${uniform} : i64
  %c128 = arith.constant 128 : i64
  %what = arith.constant ${divergent} : i64
  %table = llvm.getelementptr %base[${barriers}] : (!llvm.ptr) -> !llvm.ptr, i8
  %released = scf.for %b = %c0 to %count step %c1 iter_args(%some = %false) -> (i1) : i64 {
    %o = arith.muli %b, %c16 : i64
    %p = llvm.getelementptr %table[%o] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %come = llvm.load %p : !llvm.ptr -> i64
    %any = arith.cmpi ne, %come, %c0 : i64
    %gone = scf.if %any -> (i1) {
      %q = llvm.getelementptr %p[1] : (!llvm.ptr) -> !llvm.ptr, i64
      %wanted = llvm.load %q : !llvm.ptr -> i64
      %all = arith.cmpi eq, %come, %wanted : i64
      scf.if %all {
        llvm.store %c0, %p : i64, !llvm.ptr
        %epoch_place = llvm.getelementptr %base[${epoch}] : (!llvm.ptr) -> !llvm.ptr, i8
        %epoch = llvm.load %epoch_place : !llvm.ptr -> i64
        %anew = arith.addi %epoch, %c1 : i64
        llvm.store %anew, %epoch_place : i64, !llvm.ptr
        %w, %s = scf.for %t = %c0 to %threads step %c1 iter_args(%leader = %c0, %who = %c0) -> (i64, i64) : i64 {
          %o1 = arith.muli %t, %c8 : i64
          %record = llvm.getelementptr %base[%o1] : (!llvm.ptr, i64) -> !llvm.ptr, i8
          %p1 = llvm.getelementptr %record[${wait}] : (!llvm.ptr) -> !llvm.ptr, i8
          %w1 = llvm.load %p1 : !llvm.ptr -> i64
          %q1 = llvm.getelementptr %record[${group}] : (!llvm.ptr) -> !llvm.ptr, i8
          %g1 = llvm.load %q1 : !llvm.ptr -> i64
          %s1 = arith.andi %w1, %states : i64
          %e0 = arith.cmpi eq, %s1, %barrier : i64
          %e1 = arith.cmpi eq, %g1, %b : i64
          %in = arith.andi %e0, %e1 : i1
          %l, %n = scf.if %in -> (i64, i64) {
            llvm.store %c0, %p1 : i64, !llvm.ptr
            %none = arith.cmpi eq, %leader, %c0 : i64
            %l1 = arith.select %none, %w1, %leader : i64
            %n1 = arith.select %none, %t, %who : i64
            %u0 = arith.ori %l1, %w1 : i64
            %u1 = arith.andi %u0, %uniform : i64
            %u = arith.cmpi ne, %u1, %c0 : i64
            %d = arith.cmpi ne, %l1, %w1 : i64
            %bad = arith.andi %u, %d : i1
            scf.if %bad {
              %site0 = arith.shrui %l1, %c8 : i64
              %site1 = arith.shrui %w1, %c8 : i64
              func.call @${fail}(%failures, %what, %base, %n1, %site0, %t, %site1, %b)
                : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64, i64, i64) -> ()
            }
            scf.yield %l1, %n1 : i64, i64
          } else {
            scf.yield %leader, %who : i64, i64
          }
          scf.yield %l, %n : i64, i64
        }
      }
      scf.yield %all : i1
    } else {
      scf.yield %false : i1
    }
    %r = arith.ori %some, %gone : i1
    scf.yield %r : i1
  }
  return %released : i1
}

// Whether all threads have ended; else, where `report` holds, notes the first that has not, and the first one after it that waits for
// something else.
func.func private @__relayc_gpu.ended(%base: !llvm.ptr, %threads: i64, %failures: !llvm.ptr, %report: i1) -> i1 {${common}
  %done = arith.constant ${done} : i64
  %what = arith.constant ${stuck} : i64
  %none = arith.constant -1 : i64
  %t0, %w0, %t1, %w1 = scf.for %t = %c0 to %threads step %c1 iter_args(%a = %none, %aw = %done, %b = %none, %bw = %done)
      -> (i64, i64, i64, i64) : i64 {
    %o = arith.muli %t, %c8 : i64
    %record = llvm.getelementptr %base[%o] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %p = llvm.getelementptr %record[${wait}] : (!llvm.ptr) -> !llvm.ptr, i8
    %w = llvm.load %p : !llvm.ptr -> i64
    %waits = arith.cmpi ne, %w, %done : i64
    %no_a = arith.cmpi eq, %a, %none : i64
    %is_a = arith.andi %waits, %no_a : i1
    %a1 = arith.select %is_a, %t, %a : i64
    %aw1 = arith.select %is_a, %w, %aw : i64
    %no_b = arith.cmpi eq, %b, %none : i64
    %other = arith.cmpi ne, %w, %aw1 : i64
    %b0 = arith.andi %other, %no_b : i1
    %b1 = arith.select %b0, %t, %b : i64
    %bw1 = arith.select %b0, %w, %bw : i64
    scf.yield %a1, %aw1, %b1, %bw1 : i64, i64, i64, i64
  }
  %all = arith.cmpi eq, %t0, %none : i64
  %some = arith.xori %all, %true : i1
  %say = arith.andi %some, %report : i1
  scf.if %say {
    %site0 = arith.shrui %w0, %c8 : i64
    %site1 = arith.shrui %w1, %c8 : i64
    func.call @${fail}(%failures, %what, %base, %t0, %site0, %t1, %site1, %c0) : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64, i64, i64) -> ()
  }
  return %all : i1
}

// Threads that poll ask again.
func.func private @__relayc_gpu.retry(%base: !llvm.ptr, %threads: i64) {${common}
  %poll = arith.constant ${poll} : i64
  scf.for %t = %c0 to %threads step %c1 : i64 {
    %o = arith.muli %t, %c8 : i64
    %record = llvm.getelementptr %base[%o] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %p = llvm.getelementptr %record[${wait}] : (!llvm.ptr) -> !llvm.ptr, i8
    %w = llvm.load %p : !llvm.ptr -> i64
    %s = arith.andi %w, %states : i64
    %is = arith.cmpi eq, %s, %poll : i64
    %new = arith.select %is, %c1, %w : i64
    llvm.store %new, %p : i64, !llvm.ptr
  }
  return
}

// Runs the threads of a block, each of which has run until it waits.
func.func private @${run}(%base: !llvm.ptr, %threads: i64, %failures: !llvm.ptr) {${common}
  %progress = llvm.getelementptr %base[${progress}] : (!llvm.ptr) -> !llvm.ptr, i8
  %queue_place = llvm.getelementptr %base[${queue}] : (!llvm.ptr) -> !llvm.ptr, i8
  %null = llvm.mlir.zero : !llvm.ptr
  scf.while : () -> () {
    llvm.store %c0, %progress : i64, !llvm.ptr
    %ran = scf.for %first = %c0 to %threads step %c32 iter_args(%some = %false) -> (i1) : i64 {
      %over = arith.addi %first, %c32 : i64
      %end = arith.minui %over, %threads : i64
      %went = func.call @${warp_function}(%base, %first, %end) : (!llvm.ptr, i64, i64) -> i1
      %any = arith.ori %some, %went : i1
      scf.yield %any : i1
    }
    %released = func.call @__relayc_gpu.release_barriers(%base, %threads, %failures) : (!llvm.ptr, i64, !llvm.ptr) -> i1
    %polled0 = llvm.load %progress : !llvm.ptr -> i64
    %polled = arith.cmpi ne, %polled0, %c0 : i64
    %r0 = arith.ori %ran, %released : i1
    %r1 = arith.ori %r0, %polled : i1
    %wrong0 = llvm.load %failures : !llvm.ptr -> i64
    %right = arith.cmpi eq, %wrong0, %c0 : i64
    %on = scf.if %r1 -> (i1) {
      scf.yield %right : i1
    } else {
      %ended = func.call @__relayc_gpu.ended(%base, %threads, %failures, %false) : (!llvm.ptr, i64, !llvm.ptr, i1) -> i1
      %more = scf.if %ended -> (i1) {
        scf.yield %false : i1
      } else {
        %queue = llvm.load %queue_place : !llvm.ptr -> !llvm.ptr
        %has = llvm.icmp "ne" %queue, %null : !llvm.ptr
        %made = scf.if %has -> (i1) {
          %one = func.call @__relayc_gpu.deliver_one(%queue) : (!llvm.ptr) -> i1
          scf.yield %one : i1
        } else {
          scf.yield %false : i1
        }
        %stuck = arith.xori %made, %true : i1
        %unused = func.call @__relayc_gpu.ended(%base, %threads, %failures, %stuck) : (!llvm.ptr, i64, !llvm.ptr, i1) -> i1
        scf.yield %made : i1
      }
      scf.yield %more : i1
    }
    scf.if %on {
      func.call @__relayc_gpu.retry(%base, %threads) : (!llvm.ptr, i64) -> ()
    }
    scf.condition(%on)
  } do {
    scf.yield
  }
  return
}

// ---- races

// Whether two uses are of different threads, and in no order.
func.func private @__relayc_gpu.unordered(%x: i64, %me: i64) -> i1 {
  %c0 = arith.constant 0 : i64
  %c16 = arith.constant 16 : i64
  %c21 = arith.constant 21 : i64
  %c27 = arith.constant 27 : i64
  %c31 = arith.constant 31 : i64
  %c40 = arith.constant 40 : i64
  %threads = arith.constant 1023 : i64
  %warp_epochs = arith.constant 8191 : i64
  %d = arith.xori %x, %me : i64
  %d0 = arith.shrui %d, %c40 : i64
  %now = arith.cmpi eq, %d0, %c0 : i64
  %d1 = arith.shrui %d, %c16 : i64
  %d2 = arith.andi %d1, %threads : i64
  %other = arith.cmpi ne, %d2, %c0 : i64
  %d3 = arith.shrui %d, %c21 : i64
  %d4 = arith.andi %d3, %c31 : i64
  %apart = arith.cmpi ne, %d4, %c0 : i64
  %d5 = arith.shrui %d, %c27 : i64
  %d6 = arith.andi %d5, %warp_epochs : i64
  %together = arith.cmpi eq, %d6, %c0 : i64
  %free = arith.ori %apart, %together : i1
  %a = arith.andi %now, %other : i1
  %b = arith.andi %a, %free : i1
  return %b : i1
}

// Notes that a thread uses bytes, where they are of shared memory: it reads (0), writes (1) or does both at once (2).
func.func private @${use}(%base: !llvm.ptr, %t: i64, %address: !llvm.ptr, %bytes: i64, %site: i64, %kind: i64)
    attributes {no_inline} {${common}
  %what = arith.constant ${race} : i64
  %cell_bytes = arith.constant ${cell_bytes} : i64
  %c2 = arith.constant 2 : i64
  %c5 = arith.constant 5 : i64
  %c16 = arith.constant 16 : i64
  %c26 = arith.constant 26 : i64
  %c27 = arith.constant 27 : i64
  %c40 = arith.constant 40 : i64
  %threads = arith.constant 1023 : i64
  %sites = arith.constant 65535 : i64
  %warp_epochs = arith.constant 8191 : i64
  %b = llvm.ptrtoint %base : !llvm.ptr to i64
  %a = llvm.ptrtoint %address : !llvm.ptr to i64
  %offset = arith.subi %a, %b : i64
  %p0 = llvm.getelementptr %base[${shared_bytes}] : (!llvm.ptr) -> !llvm.ptr, i8
  %size = llvm.load %p0 : !llvm.ptr -> i64
  %last = arith.addi %offset, %bytes : i64
  %in0 = arith.cmpi ult, %offset, %size : i64
  %in1 = arith.cmpi ule, %last, %size : i64
  %in = arith.andi %in0, %in1 : i1
  scf.if %in {
    %p1 = llvm.getelementptr %base[${cells}] : (!llvm.ptr) -> !llvm.ptr, i8
    %cells = llvm.load %p1 : !llvm.ptr -> !llvm.ptr
    %p2 = llvm.getelementptr %base[${failures}] : (!llvm.ptr) -> !llvm.ptr, i8
    %failures = llvm.load %p2 : !llvm.ptr -> !llvm.ptr
    %p3 = llvm.getelementptr %base[${epoch}] : (!llvm.ptr) -> !llvm.ptr, i8
    %epoch = llvm.load %p3 : !llvm.ptr -> i64
    %warp = arith.shrui %t, %c5 : i64
    %wo = arith.muli %warp, %c8 : i64
    %p4 = llvm.getelementptr %base[${warp_epochs}] : (!llvm.ptr) -> !llvm.ptr, i8
    %p5 = llvm.getelementptr %p4[%wo] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %warp_epoch0 = llvm.load %p5 : !llvm.ptr -> i64
    %warp_epoch = arith.andi %warp_epoch0, %warp_epochs : i64
    %m0 = arith.shli %epoch, %c40 : i64
    %m1 = arith.shli %warp_epoch, %c27 : i64
    %m2 = arith.andi %kind, %c2 : i64
    %c25 = arith.constant 25 : i64
    %m3 = arith.shli %m2, %c25 : i64
    %m4 = arith.shli %t, %c16 : i64
    %m5 = arith.andi %site, %sites : i64
    %m6 = arith.ori %m0, %m1 : i64
    %m7 = arith.ori %m6, %m3 : i64
    %m8 = arith.ori %m7, %m4 : i64
    %me = arith.ori %m8, %m5 : i64
    %reads = arith.cmpi eq, %kind, %c0 : i64
    %writes = arith.cmpi ne, %kind, %c0 : i64
    scf.for %i = %offset to %last step %c1 : i64 {
      %o = arith.muli %i, %cell_bytes : i64
      %cell = llvm.getelementptr %cells[%o] : (!llvm.ptr, i64) -> !llvm.ptr, i8
      %cell1 = llvm.getelementptr %cell[1] : (!llvm.ptr) -> !llvm.ptr, i64
      %cell2 = llvm.getelementptr %cell[2] : (!llvm.ptr) -> !llvm.ptr, i64
      %writer = llvm.load %cell : !llvm.ptr -> i64
      %r1 = llvm.load %cell1 : !llvm.ptr -> i64
      %r2 = llvm.load %cell2 : !llvm.ptr -> i64
      %w0 = func.call @__relayc_gpu.unordered(%writer, %me) : (i64, i64) -> i1
      %both0 = arith.andi %writer, %me : i64
      %both1 = arith.shrui %both0, %c26 : i64
      %both2 = arith.andi %both1, %c1 : i64
      %not_both = arith.cmpi eq, %both2, %c0 : i64
      %w = arith.andi %w0, %not_both : i1
      %u1 = func.call @__relayc_gpu.unordered(%r1, %me) : (i64, i64) -> i1
      %u2 = func.call @__relayc_gpu.unordered(%r2, %me) : (i64, i64) -> i1
      %x1 = arith.andi %u1, %writes : i1
      %x2 = arith.andi %u2, %writes : i1
      %bad0 = arith.ori %w, %x1 : i1
      %bad = arith.ori %bad0, %x2 : i1
      scf.if %bad {
        %other0 = arith.select %x1, %r1, %r2 : i64
        %other = arith.select %w, %writer, %other0 : i64
        %s = arith.andi %other, %sites : i64
        %n0 = arith.shrui %other, %c16 : i64
        %n = arith.andi %n0, %threads : i64
        func.call @${fail}(%failures, %what, %base, %n, %s, %t, %site, %i)
          : (!llvm.ptr, i64, !llvm.ptr, i64, i64, i64, i64, i64) -> ()
      }
      scf.if %reads {
        %place = arith.select %u1, %cell2, %cell1 : !llvm.ptr
        llvm.store %me, %place : i64, !llvm.ptr
      } else {
        llvm.store %me, %cell : i64, !llvm.ptr
      }
    }
  }
  return
}

// ---- calls that are put off

func.func private @__relayc_gpu.deliver_one(%queue: !llvm.ptr) -> i1 {${common}
  %size = arith.constant ${entry_bytes} : i64
  %most = arith.constant ${last_entry} : i64
  %first = llvm.load %queue : !llvm.ptr -> i64
  %p = llvm.getelementptr %queue[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %end = llvm.load %p : !llvm.ptr -> i64
  %some = arith.cmpi ne, %first, %end : i64
  scf.if %some {
    %next = arith.addi %first, %c1 : i64
    llvm.store %next, %queue : i64, !llvm.ptr
    %slot = arith.andi %first, %most : i64
    %o = arith.muli %slot, %size : i64
    %ring = llvm.getelementptr %queue[${entries}] : (!llvm.ptr) -> !llvm.ptr, i8
    %entry = llvm.getelementptr %ring[%o] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %function = llvm.load %entry : !llvm.ptr -> !llvm.ptr
    %words = llvm.getelementptr %entry[1] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.call %function(%words) : !llvm.ptr, (!llvm.ptr) -> ()
  }
  return %some : i1
}

func.func private @${defer}(%queue: !llvm.ptr, %function: !llvm.ptr, %a: i64, %b: i64, %c: i64, %d: i64, %e: i64, %f: i64) {${common}
  %size = arith.constant ${entry_bytes} : i64
  %most = arith.constant ${last_entry} : i64
  %first = llvm.load %queue : !llvm.ptr -> i64
  %p = llvm.getelementptr %queue[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %end = llvm.load %p : !llvm.ptr -> i64
  %pg = llvm.getelementptr %queue[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %group = llvm.load %pg : !llvm.ptr -> i64
  %there = arith.subi %end, %first : i64
  %full = arith.cmpi ugt, %there, %most : i64
  scf.if %full {
    %unused = func.call @__relayc_gpu.deliver_one(%queue) : (!llvm.ptr) -> i1
  }
  %slot = arith.andi %end, %most : i64
  %o = arith.muli %slot, %size : i64
  %ring = llvm.getelementptr %queue[${entries}] : (!llvm.ptr) -> !llvm.ptr, i8
  %entry = llvm.getelementptr %ring[%o] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  llvm.store %function, %entry : !llvm.ptr, !llvm.ptr
${stores}
  %next = arith.addi %end, %c1 : i64
  llvm.store %next, %p : i64, !llvm.ptr
  return
}

// Makes the calls of all groups but the last `keep` ones.
func.func private @${deliver}(%queue: !llvm.ptr, %keep: i64) {${common}
  %size = arith.constant ${entry_bytes} : i64
  %most = arith.constant ${last_entry} : i64
  %p = llvm.getelementptr %queue[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %pg = llvm.getelementptr %queue[2] : (!llvm.ptr) -> !llvm.ptr, i64
  %groups = llvm.load %pg : !llvm.ptr -> i64
  %limit = arith.subi %groups, %keep : i64
  %ring = llvm.getelementptr %queue[${entries}] : (!llvm.ptr) -> !llvm.ptr, i8
  scf.while : () -> () {
    %first = llvm.load %queue : !llvm.ptr -> i64
    %end = llvm.load %p : !llvm.ptr -> i64
    %some = arith.cmpi ne, %first, %end : i64
    %slot = arith.andi %first, %most : i64
    %o = arith.muli %slot, %size : i64
    %entry = llvm.getelementptr %ring[%o] : (!llvm.ptr, i64) -> !llvm.ptr, i8
    %q = llvm.getelementptr %entry[7] : (!llvm.ptr) -> !llvm.ptr, i64
    %group = llvm.load %q : !llvm.ptr -> i64
    %old = arith.cmpi slt, %group, %limit : i64
    %go = arith.andi %some, %old : i1
    scf.condition(%go)
  } do {
    %unused = func.call @__relayc_gpu.deliver_one(%queue) : (!llvm.ptr) -> i1
    scf.yield
  }
  return
}

func.func private @${deliver_all}(%queue: !llvm.ptr) {
  scf.while : () -> () {
    %some = func.call @__relayc_gpu.deliver_one(%queue) : (!llvm.ptr) -> i1
    scf.condition(%some)
  } do {
    scf.yield
  }
  return
}
