"""The cases of ../README.md, made of the classes that a library generates, and values as comparable text."""

import struct

ALL_BYTES = bytes(range(256))
UNICODE = "snowman \u2603, clef \U0001d11e, nul \0, e\u0301, \u0639\u0631\u0628\u064a"
MAX_DOUBLE = struct.unpack(">d", bytes.fromhex("7fefffffffffffff"))[0]
MIN_DOUBLE = 5e-324
INF = float("inf")
NAN = float("nan")


def cases(t):
    """All cases by name; `t` is the module of the generated classes."""

    def point(x, y, label=None):
        return t.Point(x=x, y=y, label=label)

    def case(name, **fields):
        e = t.Everything(
            a_bool=False,
            an_i8=0,
            an_i16=0,
            an_i32=0,
            an_i64=0,
            a_double=0.0,
            a_string="",
            a_binary=b"",
            an_enum=t.Color.RED,
            a_list=[],
            a_set=set(),
            a_map={},
            a_struct=point(0, 0),
            a_union=t.Shape(text=""),
            a_typedef=0,
            required_string=name,
            bools=[],
            doubles=[],
            binaries=[],
            matrix=[],
            deep={},
            by_color={},
            shapes=[],
        )
        for field, value in fields.items():
            setattr(e, field, value)
        return e

    def empty():
        return case("empty")

    def lowest():
        return case(
            "lowest",
            an_i8=-(2**7),
            an_i16=-(2**15),
            an_i32=-(2**31),
            an_i64=-(2**63),
            a_double=-INF,
            a_set={-(2**31), -1, 0},
            a_map={"": -(2**63)},
            a_struct=point(-(2**31), -1, ""),
            a_union=t.Shape(radius=-0.0),
            a_typedef=-(2**63),
            optional_string="",
            defaulted_i32=-(2**31),
            optional_i64=-(2**63),
            doubles=[-INF, -MAX_DOUBLE, -MIN_DOUBLE, -0.0],
        )

    def highest():
        return case(
            "highest",
            a_bool=True,
            an_i8=2**7 - 1,
            an_i16=2**15 - 1,
            an_i32=2**31 - 1,
            an_i64=2**63 - 1,
            a_double=NAN,
            an_enum=t.Color.ULTRAVIOLET,
            a_set={2**31 - 1},
            a_map={"max": 2**63 - 1, "odd": 2**53 + 1},
            a_union=t.Shape(radius=INF),
            a_typedef=2**63 - 1,
            defaulted_i32=2**31 - 1,
            optional_i64=0,
            doubles=[INF, MAX_DOUBLE, MIN_DOUBLE, NAN, 0.1],
        )

    def unicode():
        return case(
            "unicode",
            a_string=UNICODE,
            a_binary=ALL_BYTES,
            an_enum=t.Color.BLUE,
            a_list=[UNICODE, "", "\u00fc"],
            a_map={UNICODE: 1, "\u00fc": 2},
            a_struct=point(1, 2, UNICODE),
            a_union=t.Shape(text=UNICODE),
            optional_string=UNICODE,
            binaries=[ALL_BYTES, b"", b"\0\0", b"\xff\xfe"],
            by_color={t.Color.GREEN: {UNICODE, "\u00fc"}},
            far_field=UNICODE,
        )

    def nested():
        parent = lowest()
        parent.children = [unicode()]
        return case(
            "nested",
            a_list=[str(i) for i in range(200)],
            a_union=t.Shape(path=[point(0, 0), point(3, 4)]),
            optional_struct=point(7, 8, "seven"),
            bools=[i % 3 == 0 for i in range(20)],
            matrix=[[1, 2], [], list(range(20))],
            deep={1: {"k": [point(1, 1), point(2, 2, "q")], "": []}, -1: {}},
            by_color={t.Color.RED: set(), t.Color.GREEN: {"leaf", "grass"}, t.Color.ULTRAVIOLET: {""}},
            shapes=[
                t.Shape(dot=point(9, 9)),
                t.Shape(path=[]),
                t.Shape(path=[point(1, 2)]),
                t.Shape(radius=2.5),
                t.Shape(text="t"),
            ],
            children=[empty(), highest(), parent],
        )

    return {e.required_string: e for e in (empty(), lowest(), highest(), unicode(), nested())}


def text(value):
    """The value as text: equal for equal values. The order of sets and maps does not count, each bit of a double does."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack(">d", value).hex()
    if isinstance(value, (list, tuple)):
        return f"[{' '.join(map(text, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"{{{' '.join(sorted(map(text, value)))}}}"
    if isinstance(value, dict):
        return f"{{{' '.join(sorted(f'{text(k)}:{text(v)}' for k, v in value.items()))}}}"
    if hasattr(value, "__dict__"):
        return f"({' '.join(f'{k}={v}' for k, v in fields(value).items())})"
    return repr(value)


def fields(value):
    """The fields of a generated class that are set."""
    return {k: text(v) for k, v in sorted(vars(value).items()) if v is not None}


def difference(got, want):
    """What of one Everything is not as in the other, or None."""
    got, want = fields(got), fields(want)
    for name in sorted(got.keys() | want.keys()):
        if got.get(name) != want.get(name):
            return f"{name} is {got.get(name)}, not {want.get(name)}"[:500]
    return None
