"""What code is generated for: a kind of target and its attributes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

from relayc.nearest import nearest
from relayc.pipelines.context.backend import find_backend


@dataclass(frozen=True)
class Option:
    """How an attribute stands in the text of a target: `-flag=value`.

    Attributes:
      attribute: its name.
      type: int, bool (true, false) or str; frozenset for features, which are given as changes.
    """

    attribute: str
    type: type

    def parse(self, flag: str, text: str) -> str | int | bool:
        """The value; raises ValueError if the text is not of the type."""
        if self.type is bool:
            if text not in ("true", "false"):
                raise ValueError(f"target: expected -{flag}=true or -{flag}=false, found {text or 'nothing'}")
            return text == "true"
        if self.type is int:
            if not text.isdecimal():
                raise ValueError(f"target: expected -{flag}= with a number, found {text or 'nothing'}")
            return int(text)
        return text

    def checked(self, value: Any) -> Any:
        """A value that is no text of a target; raises TypeError for another type."""
        expected: type = {int: Integral, frozenset: Iterable}.get(self.type, self.type)
        if not isinstance(value, expected) or (isinstance(value, bool) and self.type is not bool):
            raise TypeError(f"target: {self.attribute}: expected {self.type.__name__}, found {value!r}")
        return int(value) if isinstance(value, Integral) and self.type is int else value


@dataclass(frozen=True, init=False)
class Target:
    """What to compile for: a kind ("cpu") and its attributes, which decide the code.

    Args:
      kind: a kind, optionally with attributes, as in "cpu -l1-bytes=32768 -num-threads=2"; another Target is copied. "llvm" is "cpu".
      mcpu: a named processor of the kind; "native" (the default) is this machine's.
      features: instructions, with "+" or "-", as "+f,-g" or a list, applied in order to those of `mcpu`.
      num_threads, emulate, attributes: other attributes by name (see the fields of the kind's class).

    Raises:
      ValueError: a kind that nobody registered; an attribute, processor or feature that the kind does not have; a number out of range.
      TypeError: a value of another type.

    Attributes that are not given are those of `mcpu`: "native" takes them from this machine, a named processor from a table, so that its
    text means the same target on every machine. `str(target)` gives all attributes, and `Target(str(target))` is equal to `target`
    anywhere. Targets are equal if kind and attributes are. A target may be one that this machine cannot run (`lacking`): programs for it
    can be looked at and kept, but not called.

    What every kind has:
      num_threads: threads that schedules plan for; a program runs on any number.
      vector_bytes, num_vector_registers: vector registers of a core.
      l1_bytes, l2_bytes, l3_bytes: data caches.
      features: names of the instructions that not all processors of the kind have.
      emulate: whether the code runs on this machine in place of the target; False where the kind has no such attribute.
    """

    kind: str
    num_threads: int
    vector_bytes: int
    num_vector_registers: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    features: frozenset[str]
    emulate: bool

    options: ClassVar[Mapping[str, Option]] = {}
    """The attributes of the kind by flag, in the order of the target's text."""

    def __new__(
        cls,
        kind: "str | Target" = "cpu",
        mcpu: str | None = None,
        features: str | Iterable[str] | None = None,
        num_threads: int | None = None,
        emulate: bool | None = None,
        **attributes: Any,
    ) -> "Target":
        base = kind if isinstance(kind, Target) else None
        name, words = (kind.kind, []) if isinstance(kind, Target) else _split(kind)
        backend = find_backend(name)
        named = {"mcpu": mcpu, "features": features, "num_threads": num_threads, "emulate": emulate, **attributes}
        known = {option.attribute: option for option in backend.target.options.values()}
        unknown = [name for name, value in named.items() if value is not None and name not in known]
        if unknown:
            found = f"{', '.join(unknown)}{nearest(unknown[0], known)}"
            raise ValueError(f"target {backend.kind}: expected attributes out of {', '.join(known)}, found {found}")
        given = {name: known[name].checked(value) for name, value in named.items() if value is not None}
        target = object.__new__(backend.target)
        completed = backend.target.complete({**backend.target._parse(words), **given}, base)
        for name, value in {"kind": backend.kind, "emulate": False, **completed}.items():
            object.__setattr__(target, name, value)
        return target

    @classmethod
    def _parse(cls, words: Iterable[str]) -> dict[str, Any]:
        """Attributes from the words of a text: ["-mcpu=native"] results in {"mcpu": "native"}."""
        given: dict[str, Any] = {}
        for word in words:
            flag, equals, value = word.lstrip("-").partition("=")
            if not word.startswith("-") or not equals or flag not in cls.options:
                raise ValueError(
                    f"target: expected {', '.join(f'-{flag}=' for flag in cls.options)}, found {word}{nearest(flag, cls.options)}"
                )
            option = cls.options[flag]
            if option.attribute in given:
                raise ValueError(f"target: expected -{flag}= once, found it again in {word}")
            given[option.attribute] = option.parse(flag, value)
        return given

    @classmethod
    def complete(cls, given: Mapping[str, Any], base: "Target | None") -> dict[str, Any]:
        """All attributes of a target.

        Args:
          given: requested attributes, of the types in `options`; "features" are changes.
          base: a target of the kind that provides the other attributes.

        Raises:
          ValueError: a value that the kind does not support.
        """
        raise NotImplementedError

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name, as plain values: numbers, texts, and features as a sorted list."""
        values = {option.attribute: getattr(self, option.attribute) for option in self.options.values()}
        return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in values.items()}

    def _value_text(self, attribute: str) -> str:
        """The value of an attribute in the text of the target; an empty text leaves it out."""
        value = getattr(self, attribute)
        return ("true" if value else "") if isinstance(value, bool) else str(value)

    def __str__(self) -> str:
        texts = {flag: self._value_text(option.attribute) for flag, option in self.options.items()}
        return " ".join([self.kind, *(f"-{flag}={text}" for flag, text in texts.items() if text)])

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return Target, (str(self),)

    def has(self, feature: str) -> bool:
        """Whether the processor has a feature, by its name in this kind."""
        return feature in self.features

    def lanes(self, bits: int) -> int:
        """Elements of `bits` bits in a vector register."""
        return self.vector_bytes * 8 // bits

    @property
    def mask_bits(self) -> int:
        """Bits of the smallest elements for which masked loads and stores are single instructions; 0 if there are none."""
        return 0

    @property
    def is_gpu(self) -> bool:
        """Whether kernels are launches of blocks of threads, on memory of a device (see pipelines.targets.gpu)."""
        return False

    @property
    def has_fma(self) -> bool:
        """Whether there are instructions that multiply and add with one rounding."""
        raise NotImplementedError

    @property
    def has_bf16(self) -> bool:
        """Whether there are instructions that multiply bf16 and add in f32: products of bf16 are faster than those of f32."""
        raise NotImplementedError

    @property
    def reduces_range(self) -> bool:
        """Whether products of bytes by signed bytes of seven bits are faster than by those of eight: pmaddubsw saturates other sums."""
        return False

    @property
    def precisions(self) -> Mapping[str, Mapping[str, int]]:
        """The values of compile(precision=...) for which there are faster instructions than for f32, each with its settings of strategies
        (keys of PassContext's config)."""
        return {"f32": {}, "bf16": {}} if self.has_bf16 else {"f32": {}}

    @property
    def blocks_channels(self) -> bool:
        """Whether convolutions are faster on images with the channels in blocks of a vector than with the channels last."""
        return True

    @property
    def image_dtypes(self) -> frozenset[str]:
        """Element types of the images that convolutions are faster on in another layout than that of the program."""
        return frozenset({"float32"})

    @property
    def lacking(self) -> tuple[str, ...]:
        """Features that the code needs and this machine does not have; with any, the code does not run here."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """The properties that machine code depends on besides the attributes, if it is compiled for this very machine; otherwise empty."""
        return ""

    @property
    def is_host(self) -> bool:
        """Whether this machine has every feature of the target, so that its code runs here."""
        return not self.lacking


def _split(text: str) -> tuple[str, list[str]]:
    """A kind and the words after it."""
    if not isinstance(text, str):
        raise TypeError(f"target: expected a text or a Target, found {text!r}")
    kind, *words = text.split() or [""]
    return kind, words
