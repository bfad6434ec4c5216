"""Changes of groups in the IR: an operator is wrapped into a relay.fused, a producer is merged into the group that uses its result."""

from collections.abc import Sequence

from relayc.dialects.mlir import ir
from relayc.dialects.relay.base import Op
from relayc.dialects.relay.structure import Fused, Yield
from relayc.dialects.relay.tuples import fields_of, make_tuple
from relayc.pipelines.graph.fusion.groups import COMPILER, COMPOSITE, Group


def wrap(op: Op) -> Group:
    """Wraps an operator in a relay.fused, in place.

    Several results become one tuple, which is unpacked after the group.
    """
    operation = op.operation
    results = list(operation.results)
    types = [result.type for result in results]
    type_ = types[0] if len(types) == 1 else ir.TupleType.get_tuple(types)
    location = operation.location
    fused = _create(Fused, [type_], (), location, ir.InsertionPoint(operation))
    result = fused.results[0]
    block = fused.regions[0].blocks.append()
    with ir.InsertionPoint(operation), location:
        outside = [result] if len(results) == 1 else fields_of(result)
    for old, new in zip(results, outside, strict=True):
        old.replace_all_uses_with(new)
    block.append(operation)
    with ir.InsertionPoint(block), location:
        yielded = results[0] if len(results) == 1 else make_tuple(results)
    _create(Yield, [], [yielded], location, ir.InsertionPoint(block))
    return Group(fused.opview)


def _create(cls: type[Op], types: Sequence[ir.Type], operands: Sequence[ir.Value], loc: ir.Location, ip: ir.InsertionPoint) -> ir.Operation:
    # Not by the constructor of the class, which would run type relations again.
    found = ir.Operation.create(cls.OPERATION_NAME, types, operands, regions=len(cls.region_names), loc=loc, ip=ip)
    return found.operation


def merge(producer: Group, consumer: Group) -> Group:
    """Moves the members of `producer`, whose only user is `consumer`, into the relay.fused of `consumer`, which is created if needed.

    They are inserted after the anchor of the consumer if only members after it use them, otherwise at the front. The merged group has the
    attributes of both. Both groups have one result, and the given views are no longer valid.
    """
    merged = consumer if consumer.is_fused else wrap(consumer.op)
    anchor = consumer.anchor
    behind = anchor is not None and all(anchor.operation.is_before_in_block(user.operation) for user in producer.users)
    place = consumer.members.index(anchor) + 1 if behind else 0
    following = consumer.members[place].operation  # the anchor is not the last member if members after it use the producer
    location, produced = producer.operation.location, producer.result
    inside = list(producer.block.operations)[:-1] if producer.is_fused else [producer.op]  # including constants of hand-written groups
    for op in inside:
        op.operation.move_before(following)
    if producer.is_fused:
        _take_attributes(producer.operation, merged.operation)
        producer.result.replace_all_uses_with(producer.yielded)
        producer.operation.erase()
    merged.operation.location = ir.Location.fused([location, merged.operation.location])
    # Facts about the merged group that are already known.
    found = Group(merged.op)
    found.__dict__.update(
        members=(*consumer.members[:place], *producer.members, *consumer.members[place:]),
        pattern=max(producer.pattern, consumer.pattern),
        anchor=anchor if behind else producer.anchor or anchor,
        max_operands=producer.max_operands + consumer.max_operands,
        has_one_result=True,
    )
    if place == 0 and "captured" in consumer.__dict__:
        found.__dict__["captured"] = tuple(v for v in dict.fromkeys((*producer.captured, *consumer.captured)) if v != produced)
    return found


def gather(operations: Sequence[ir.OpView], attributes: dict[str, str]) -> Group:
    """Moves operators, in program order, into one relay.fused at the position of the last one, whose results alone are used outside."""
    *inner, root = operations
    group = wrap(root)
    first = group.block.operations[0].operation
    for op in inner:
        op.operation.move_before(first)
    locations = [op.operation.location for op in operations]
    group.operation.location = ir.Location.fused(locations)
    for name, text in attributes.items():
        group.operation.attributes[name] = ir.StringAttr.get(text)
    return Group(group.op)


def _take_attributes(source: ir.Operation, target: ir.Operation) -> None:
    for name in (COMPOSITE, COMPILER):
        if name in source.attributes:
            target.attributes[name] = source.attributes[name]
