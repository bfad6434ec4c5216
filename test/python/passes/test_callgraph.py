"""Components of call graphs."""

import random

from relayc.dialects.callgraph import components, is_recursive


def reached(callees, start):
    found, pending = set(), list(callees[start])
    while pending:
        name = pending.pop()
        if name in callees and name not in found:
            found.add(name)
            pending += callees[name]
    return found


def test_components_are_what_reaches_one_another_and_callees_come_first():
    choose = random.Random(0)
    for _ in range(200):
        names = [str(i) for i in range(choose.randrange(1, 9))]
        callees = {name: choose.choices([*names, "elsewhere"], k=choose.randrange(3)) for name in names}
        found = components(callees)
        assert sorted(name for component in found for name in component) == sorted(names)
        place = {name: i for i, component in enumerate(found) for name in component}
        for a in names:
            behind = reached(callees, a)
            assert is_recursive(found[place[a]], callees) == (a in behind)
            for b in names:
                assert (place[a] == place[b]) == (a == b or (b in behind and a in reached(callees, b)))
                assert b not in behind or place[b] <= place[a]


def test_a_chain_may_be_longer_than_pythons_stack():
    callees = {str(i): [str(i + 1)] for i in range(5000)}
    assert components(callees) == [[str(i)] for i in reversed(range(5000))]
