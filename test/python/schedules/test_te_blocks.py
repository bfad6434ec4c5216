"""Functions of the te stage as blocks: which of their operations have one."""

import numpy as np
import pytest

from relayc.pipelines.evaluate.tir import run
from relayc.tir import Schedule, ScheduleError

HEAD = """
#m = affine_map<(d0) -> (d0)>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
"""
SUM = """
  %{0} = linalg.generic {{indexing_maps = [#m, #m], iterator_types = ["parallel"]}} ins(%{1} : tensor<8xf32>) outs(%e : tensor<8xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v : f32
  }} -> tensor<8xf32>
"""
TAIL = "  return %y : tensor<8xf32>\n}\n"


def test_an_operation_whose_result_nothing_reads_has_no_block() -> None:
    assert len(Schedule(HEAD + SUM.format("unread", "x") + SUM.format("y", "x") + TAIL).get_blocks()) == 1
    assert len(Schedule(HEAD + SUM.format("read", "x") + SUM.format("y", "read") + TAIL).get_blocks()) == 2


TWO = """
  %t:2 = linalg.generic {indexing_maps = [#m, #m, #m], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>)
      outs(%e, %e : tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32, %p: f32):
    %v = arith.addf %a, %a : f32
    linalg.yield %v, %a : f32, f32
  } -> (tensor<8xf32>, tensor<8xf32>)
"""


@pytest.mark.parametrize("read", [0, 1])
def test_an_operation_has_a_block_where_one_of_its_results_is_read(read: int) -> None:
    schedule = Schedule(HEAD + TWO + SUM.format("y", f"t#{read}") + TAIL)
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run(schedule.mod, [x])[0], x * (2 if read else 4))
    assert len(schedule.get_blocks()) == 2


def test_a_tensor_without_contents_is_not_read() -> None:
    words = "@main: expected what is one computation at each element, found a tensor without contents"
    with pytest.raises(ScheduleError, match=words):
        Schedule(HEAD + SUM.format("y", "e") + TAIL)
