// RUN: not relayc-opt %s --passes specialize --split-input-file 2>&1 | filecheck %s

// CHECK: @other: relay.specialize: expected it of main only
module {
  func.func @main(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
    return %x : tensor<?xf32, ["n"]>
  }
  func.func @other(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> attributes {relay.specialize = [{n = 1}]} {
    return %x : tensor<?xf32, ["n"]>
  }
}
