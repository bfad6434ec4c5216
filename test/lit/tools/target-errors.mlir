// A target that is none is one line that says what was found and what was expected.
// RUN: not relayc-opt %s --config "target=tpu" 2>&1 | filecheck %s --check-prefix KIND
// RUN: not relayc-opt %s --config "target=cpu -cache=1" 2>&1 | filecheck %s --check-prefix FLAG
// RUN: not relayc-opt %s --config "target=cpu -l1-bytes=32K" 2>&1 | filecheck %s --check-prefix NUMBER
// KIND: error: target: expected a kind out of cpu, cuda, llvm, found tpu
// FLAG: error: target: expected -mcpu=, -mattr=, -num-threads=, -vector-bytes=, -num-vector-registers=, -l1-bytes=, -l2-bytes=, -l3-bytes=, -emulate=, found -cache=1
// NUMBER: error: target: expected -l1-bytes= with a number, found 32K
func.func @main() {
  return
}
