"""Relay's prelude: lists, options, trees and natural numbers, with the functions on them that programs expect under these names."""

from relayc.frontend.relay.ast.module import RelayModule
from relayc.frontend.relay.inference import infer_module
from relayc.frontend.relay.text import parse_module

_PRELUDE = """
type List[A] { Cons(A, List[A]), Nil }
type Option[A] { Some(A), None }
type Tree[A] { Rose(A, List[Tree[A]]) }

def @id[A](%value: A) -> A { %value }
def @compose[A, B, C](%outer: fn(B) -> C, %inner: fn(A) -> B) -> fn(A) -> C { fn (%value: A) -> C { %outer(%inner(%value)) } }
def @flip[A, B, C](%f: fn(A, B) -> C) -> fn(B, A) -> C { fn (%b: B, %a: A) -> C { %f(%a, %b) } }
def @iterate[A](%f: fn(A) -> A, %times: int32) -> fn(A) -> A {
  fn (%value: A) -> A { if (%times < 1) { %value } else { @iterate(%f, %times - 1)(%f(%value)) } }
}

def @hd[A](%list: List[A]) -> A { match? (%list) { Cons(%first, _) => %first } }
def @tl[A](%list: List[A]) -> List[A] { match? (%list) { Cons(_, %rest) => %rest } }
def @nth[A](%list: List[A], %place: int32) -> A { if (%place == 0) { @hd(%list) } else { @nth(@tl(%list), %place - 1) } }
def @update[A](%list: List[A], %place: int32, %value: A) -> List[A] {
  if (%place == 0) { Cons(%value, @tl(%list)) } else { Cons(@hd(%list), @update(@tl(%list), %place - 1, %value)) }
}
def @length[A](%list: List[A]) -> int32 { @foldl(fn (%count: int32, %item: A) -> int32 { %count + 1 }, 0, %list) }
def @sum(%list: List[int32]) -> int32 { @foldl(fn (%total: int32, %item: int32) -> int32 { %total + %item }, 0, %list) }

def @map[A, B](%f: fn(A) -> B, %list: List[A]) -> List[B] {
  match (%list) { Cons(%first, %rest) => Cons(%f(%first), @map(%f, %rest)), Nil => Nil }
}
def @foldl[A, B](%f: fn(A, B) -> A, %start: A, %list: List[B]) -> A {
  match (%list) { Cons(%first, %rest) => @foldl(%f, %f(%start, %first), %rest), Nil => %start }
}
def @foldr[A, B](%f: fn(A, B) -> B, %end: B, %list: List[A]) -> B {
  match (%list) { Cons(%first, %rest) => %f(%first, @foldr(%f, %end, %rest)), Nil => %end }
}
def @foldr1[A](%f: fn(A, A) -> A, %list: List[A]) -> A {
  match? (%list) { Cons(%last, Nil) => %last, Cons(%first, %rest) => %f(%first, @foldr1(%f, %rest)) }
}
def @concat[A](%front: List[A], %back: List[A]) -> List[A] {
  match (%front) { Cons(%first, %rest) => Cons(%first, @concat(%rest, %back)), Nil => %back }
}
def @filter[A](%keeps: fn(A) -> bool, %list: List[A]) -> List[A] {
  match (%list) {
    Cons(%first, %rest) => { if (%keeps(%first)) { Cons(%first, @filter(%keeps, %rest)) } else { @filter(%keeps, %rest) } },
    Nil => Nil
  }
}
def @zip[A, B](%left: List[A], %right: List[B]) -> List[(A, B)] {
  match ((%left, %right)) { (Cons(%a, %as), Cons(%b, %bs)) => Cons((%a, %b), @zip(%as, %bs)), _ => Nil }
}
def @rev[A](%list: List[A]) -> List[A] { @foldl(fn (%done: List[A], %item: A) -> List[A] { Cons(%item, %done) }, Nil, %list) }
def @map_accumr[A, B, C](%f: fn(A, B) -> (A, C), %start: A, %list: List[B]) -> (A, List[C]) {
  match (%list) {
    Cons(%first, %rest) => {
      let %after = @map_accumr(%f, %start, %rest);
      let %made = %f(%after.0, %first);
      (%made.0, Cons(%made.1, %after.1))
    },
    Nil => (%start, Nil)
  }
}
def @map_accuml[A, B, C](%f: fn(A, B) -> (A, C), %start: A, %list: List[B]) -> (A, List[C]) {
  @foldl(
    fn (%state: (A, List[C]), %item: B) -> (A, List[C]) { let %made = %f(%state.0, %item); (%made.0, Cons(%made.1, %state.1)) },
    (%start, Nil), %list)
}
def @unfoldr[A, B](%next: fn(A) -> Option[(A, B)], %seed: A) -> List[B] {
  match (%next(%seed)) { Some(%made) => Cons(%made.1, @unfoldr(%next, %made.0)), None => Nil }
}
def @unfoldl[A, B](%next: fn(A) -> Option[(A, B)], %seed: A) -> List[B] { @rev(@unfoldr(%next, %seed)) }

def @tmap[A, B](%f: fn(A) -> B, %tree: Tree[A]) -> Tree[B] {
  match (%tree) { Rose(%value, %below) => Rose(%f(%value), @map(fn (%each: Tree[A]) -> Tree[B] { @tmap(%f, %each) }, %below)) }
}
def @size[A](%tree: Tree[A]) -> int32 { match (%tree) { Rose(_, %below) => 1 + @sum(@map(@size, %below)) } }
"""
_NAT = """
type nat { zero, succ(nat) }

def @nat_double(%n: nat) -> nat { match (%n) { zero => zero, succ(%less) => succ(succ(@nat_double(%less))) } }
def @nat_add(%a: nat, %b: nat) -> nat { match (%a) { zero => %b, succ(%less) => succ(@nat_add(%less, %b)) } }
def @nat_nth[A](%list: List[A], %place: nat) -> A { match (%place) { zero => @hd(%list), succ(%less) => @nat_nth(@tl(%list), %less) } }
def @nat_update[A](%list: List[A], %place: nat, %value: A) -> List[A] {
  match (%place) {
    zero => Cons(%value, @tl(%list)),
    succ(%less) => Cons(@hd(%list), @nat_update(@tl(%list), %less, %value))
  }
}
def @nat_iterate[A](%f: fn(A) -> A, %times: nat) -> fn(A) -> A {
  match (%times) { zero => fn (%value: A) -> A { %value }, succ(%less) => fn (%value: A) -> A { %f(@nat_iterate(%f, %less)(%value)) } }
}
"""
_GRADIENT = """
type GradCell[A] { Raw(A), One(fn() -> A), Zero(fn() -> A) }

def @FromGradCell[A](%cell: GradCell[A]) -> A { match (%cell) { Raw(%value) => %value, One(%make) => %make(), Zero(%make) => %make() } }
def @AddGradCell[A](%add: fn(A, A) -> A, %a: GradCell[A], %b: GradCell[A]) -> GradCell[A] {
  match ((%a, %b)) { (Zero(_), _) => %b, (_, Zero(_)) => %a, _ => Raw(%add(@FromGradCell(%a), @FromGradCell(%b))) }
}
def @MultiplyGradCell[A](%multiply: fn(A, A) -> A, %a: GradCell[A], %b: GradCell[A]) -> GradCell[A] {
  match ((%a, %b)) {
    (Zero(_), _) => %a, (_, Zero(_)) => %b, (One(_), _) => %b, (_, One(_)) => %a,
    _ => Raw(%multiply(@FromGradCell(%a), @FromGradCell(%b)))
  }
}
"""
STANDARD = {"prelude.rly": _PRELUDE, "nat.rly": _NAT, "gradient.rly": _GRADIENT, "core.rly": "extern type Storage"}
"""Texts that modules may take in, by Relay's names of their files."""


def import_from_std(module: RelayModule, name: str) -> None:
    """Adds the functions and types of a standard text to a module, with their types. Raises KeyError for another name."""
    if name not in STANDARD:
        raise KeyError(f"standard module: expected one of {', '.join(STANDARD)}, found {name!r}")
    known = RelayModule({}, module.type_definitions) if name == "prelude.rly" else module
    module.update(infer_module(parse_module(STANDARD[name], name, known)))


class Prelude:
    """The prelude in a module. Its functions are attributes: `prelude.map`.

    Attributes:
      mod: the module.
    """

    def __init__(self, mod: RelayModule | None = None) -> None:
        self.mod = RelayModule() if mod is None else mod
        import_from_std(self.mod, "prelude.rly")
        for var in self.mod.get_global_vars():
            setattr(self, var.name_hint, var)
