"""Random kernels, emulated, give what numpy gives that computes all threads at once.

A kernel is a list of statements over REGISTERS numbers of each thread. Statements that wait (exchanges through shared memory, shuffles, and
loops and branches with such statements inside) stand where all threads of a block come; others also stand where some do.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest
from gpu_kernels import emulated, kernel

from relayc.pipelines.context.passes import PassContext

SHARED = "#gpu.address_space<workgroup>"
BLOCKS, REGISTERS, TOTALS = 5, 3, 4
PROGRAMS = 12


@dataclass
class Text:
    """The text of a kernel while it is written. `registers` are the names of the values that hold them."""

    lines: list[str] = field(default_factory=list)
    count: int = 0

    def value(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def number(self, n: int, type_: str = "i32") -> str:
        return self.value(f"arith.constant {n} : {type_}")


class Compute:
    """A register of two others and a number."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.to, self.a, self.b = rng.integers(0, REGISTERS, 3).tolist()
        self.name = str(rng.choice(["addi", "subi", "muli", "xori", "minsi"]))
        self.n = int(rng.integers(-9, 10))

    def write(self, text: Text, registers: list[str], threads: int) -> list[str]:
        sum_ = text.value(f"arith.addi {registers[self.b]}, {text.number(self.n)} : i32")
        made = text.value(f"arith.{self.name} {registers[self.a]}, {sum_} : i32")
        return [made if i == self.to else r for i, r in enumerate(registers)]

    def run(self, state: "State", active: np.ndarray) -> None:
        a, b = state.registers[self.a], state.registers[self.b] + np.int32(self.n)
        operations = {"addi": np.add, "subi": np.subtract, "muli": np.multiply, "xori": np.bitwise_xor, "minsi": np.minimum}
        state.set(self.to, operations[self.name](a, b), active)


class Share:
    """A register goes to shared memory, and comes back from the place of another thread."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.a, self.to = rng.integers(0, REGISTERS, 2).tolist()
        self.factor, self.offset = int(rng.integers(1, 50)), int(rng.integers(0, 100))

    def write(self, text: Text, registers: list[str], threads: int) -> list[str]:
        type_ = f"memref<{threads}xi32, {SHARED}>"
        text.lines += [f"memref.store {registers[self.a]}, %s[%t0] : {type_}", "gpu.barrier"]
        place = text.value(f"arith.muli %t0, {text.number(self.factor, 'index')} : index")
        place = text.value(f"arith.addi {place}, {text.number(self.offset, 'index')} : index")
        place = text.value(f"arith.remui {place}, {text.number(threads, 'index')} : index")
        made = text.value(f"memref.load %s[{place}] : {type_}")
        text.lines.append("gpu.barrier")
        return [made if i == self.to else r for i, r in enumerate(registers)]

    def run(self, state: "State", active: np.ndarray) -> None:
        threads = np.arange(state.threads)
        state.set(self.to, state.registers[self.a][:, (threads * self.factor + self.offset) % state.threads], active)


class Shuffle:
    """A register of another lane of the warp."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.a, self.to = rng.integers(0, REGISTERS, 2).tolist()
        self.mode, self.by = str(rng.choice(["xor", "up", "down", "idx"])), int(rng.integers(0, 32))

    def write(self, text: Text, registers: list[str], threads: int) -> list[str]:
        width, by = text.number(32), text.number(self.by)
        text.count += 1
        made = f"%v{text.count}"
        text.lines.append(f"{made}, {made}p = gpu.shuffle {self.mode} {registers[self.a]}, {by}, {width} : i32")
        return [made if i == self.to else r for i, r in enumerate(registers)]

    def run(self, state: "State", active: np.ndarray) -> None:
        lanes = np.arange(32)
        source = {"xor": lanes ^ self.by, "up": lanes - self.by, "down": lanes + self.by, "idx": np.full(32, self.by)}[self.mode]
        source = np.where((source >= 0) & (source < 32), source, lanes)
        places = np.arange(state.threads) // 32 * 32 + np.tile(source, state.threads // 32)
        state.set(self.to, state.registers[self.a][:, places], active)


class Total:
    """A register is added to one of the numbers that all blocks share."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.a, self.which = int(rng.integers(0, REGISTERS)), int(rng.integers(0, TOTALS))

    def write(self, text: Text, registers: list[str], threads: int) -> list[str]:
        place = text.number(self.which, "index")
        text.value(f"memref.atomic_rmw addi {registers[self.a]}, %totals[{place}] : (i32, memref<{TOTALS}xi32>) -> i32")
        return registers

    def run(self, state: "State", active: np.ndarray) -> None:
        state.totals[self.which] += state.registers[self.a][active].sum(dtype=np.int32)


class Branch:
    """Statements for some threads, and others for the rest; or for some blocks, whose threads may wait."""

    def __init__(self, rng: np.random.Generator, depth: int, together: bool) -> None:
        self.by_block = together and bool(rng.integers(0, 2))
        self.least = int(rng.integers(1, BLOCKS if self.by_block else 60))
        inside = together and self.by_block
        self.then, self.otherwise = statements(rng, depth - 1, inside), statements(rng, depth - 1, inside)

    def write(self, text: Text, registers: list[str], threads: int) -> list[str]:
        number = "%b0" if self.by_block else "%t0"
        condition = text.value(f"arith.cmpi ult, {number}, {text.number(self.least, 'index')} : index")
        names = [f"%r{text.count}_{i}" for i in range(REGISTERS)]
        types = ", ".join(["i32"] * REGISTERS)
        text.lines.append(f"{', '.join(names)} = scf.if {condition} -> ({types}) {{")
        for body, end in ((self.then, "} else {"), (self.otherwise, "}")):
            given = write(body, text, registers, threads)
            text.lines += [f"scf.yield {', '.join(given)} : {types}", end]
        return names

    def run(self, state: "State", active: np.ndarray) -> None:
        holds = (np.arange(BLOCKS)[:, None] if self.by_block else np.arange(state.threads)[None]) < self.least
        for body, chosen in ((self.then, active & holds), (self.otherwise, active & ~holds)):
            for statement in body:
                statement.run(state, chosen)


class Loop:
    """Statements again and again: a counted loop, or one whose end is computed."""

    def __init__(self, rng: np.random.Generator, depth: int, together: bool) -> None:
        self.count, self.counted = int(rng.integers(0, 4)), bool(rng.integers(0, 2))
        self.body = statements(rng, depth - 1, together)

    def write(self, text: Text, registers: list[str], threads: int) -> list[str]:
        zero, one, count = (text.number(n, "index") for n in (0, 1, self.count))
        label = text.count
        names, inside = ([f"%{letter}{label}_{i}" for i in range(REGISTERS)] for letter in "rq")
        types = ", ".join(["i32"] * REGISTERS)
        if self.counted:
            carried = ", ".join(f"{a} = {r}" for a, r in zip(inside, registers, strict=True))
            text.lines.append(f"{', '.join(names)} = scf.for %i{label} = {zero} to {count} step {one} iter_args({carried}) -> ({types}) {{")
            given = write(self.body, text, inside, threads)
            text.lines += [f"scf.yield {', '.join(given)} : {types}", "}"]
            return names
        before = ", ".join(f"{a} = {r}" for a, r in zip(inside, registers, strict=True))
        both = f"index, {types}"
        text.lines.append(f"%n{label}, {', '.join(names)} = scf.while (%k{label} = {zero}, {before}) : ({both}) -> ({both}) {{")
        more = text.value(f"arith.cmpi ult, %k{label}, {count} : index")
        text.lines.append(f"scf.condition({more}) %k{label}, {', '.join(inside)} : {both}")
        arguments = ", ".join(f"{name}w: i32" for name in inside)
        text.lines += ["} do {", f"^bb0(%m{label}: index, {arguments}):"]
        given = write(self.body, text, [f"{name}w" for name in inside], threads)
        following = text.value(f"arith.addi %m{label}, {one} : index")
        text.lines += [f"scf.yield {following}, {', '.join(given)} : {both}", "}"]
        return names

    def run(self, state: "State", active: np.ndarray) -> None:
        for _ in range(self.count):
            for statement in self.body:
                statement.run(state, active)


@dataclass
class State:
    """All threads of all blocks: an array of (BLOCKS, threads) for each register."""

    registers: list[np.ndarray]
    totals: np.ndarray
    threads: int

    def set(self, register: int, value: np.ndarray, active: np.ndarray) -> None:
        self.registers[register] = np.where(active, value, self.registers[register])


def statements(rng: np.random.Generator, depth: int, together: bool) -> list:
    """Some statements; those that wait where threads are together."""
    simple = [Compute, Total, *([Share, Shuffle] if together else [])]
    found = []
    for _ in range(int(rng.integers(1, 5))):
        if depth and rng.integers(0, 3) == 0:
            found.append((Branch if rng.integers(0, 2) else Loop)(rng, depth, together))
        else:
            found.append(simple[int(rng.integers(0, len(simple)))](rng))
    return found


def write(body: list, text: Text, registers: list[str], threads: int) -> list[str]:
    for statement in body:
        registers = statement.write(text, registers, threads)
    return registers


def written(name: str, body: list, threads: int) -> str:
    """A kernel that takes its registers from %x and gives them in %y."""
    text, shape = Text(), f"memref<{REGISTERS}x{BLOCKS}x{threads}xi32>"
    places = [text.number(i, "index") for i in range(REGISTERS)]
    registers = [text.value(f"memref.load %x[{place}, %b0, %t0] : {shape}") for place in places]
    for place, register in zip(places, write(body, text, registers, threads), strict=True):
        text.lines.append(f"memref.store {register}, %y[{place}, %b0, %t0] : {shape}")
    arguments = f"%x: {shape}, %y: {shape}, %totals: memref<{TOTALS}xi32>"
    return kernel(name, arguments, "\n".join(text.lines), threads, BLOCKS, f"%s: memref<{threads}xi32, {SHARED}>")


@pytest.mark.parametrize("seed", [0, 1])
def test_random_kernels_are_what_numpy_computes(seed):
    rng = np.random.default_rng(seed)
    programs = [(f"k{i}", statements(rng, 2, True), int(rng.choice([32, 64, 160]))) for i in range(PROGRAMS)]
    with PassContext(config={"gpu.check_races": True}):
        functions = emulated("\n".join(written(*program) for program in programs))
    for name, body, threads in programs:
        x = rng.integers(-1000, 1000, (REGISTERS, BLOCKS, threads)).astype(np.int32)
        y, totals = np.zeros_like(x), np.zeros(TOTALS, np.int32)
        functions[name](x, y, totals)
        state = State(list(x), np.zeros(TOTALS, np.int32), threads)
        with np.errstate(over="ignore"):
            for statement in body:
                statement.run(state, np.ones((BLOCKS, threads), bool))
        np.testing.assert_array_equal(y, np.stack(state.registers), err_msg=name)
        np.testing.assert_array_equal(totals, state.totals, err_msg=name)
