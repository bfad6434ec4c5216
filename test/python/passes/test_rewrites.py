"""What each rule of a graph pass does, by the table rewrites.txt: the results are as they say there, and mean what they did before."""

from pathlib import Path

import pytest
from rewrites import Case, cases_of


@pytest.mark.parametrize("case", cases_of(Path(__file__).parent / "rewrites.txt"), ids=str)
def test_results_are_rewritten_as_the_table_says(case: Case) -> None:
    assert case.found() == case.after
