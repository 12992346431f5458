"use strict";
// The cases of ../README.md, and how two values of a case differ. i64 are Int64: a number holds only 53 bits.

const Int64 = require("node-int64");
const { Color, Everything, Point, Shape } = require("./echo/echo_types");

const UNICODE = "snowman \u2603, clef \u{1d11e}, nul \0, e\u0301, \u0639\u0631\u0628\u064a";
const ALL_BYTES = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
const LOWEST_I64 = new Int64("8000000000000000");
const HIGHEST_I64 = new Int64("7fffffffffffffff");

const point = (x, y, label) => new Point({ x, y, label });
const shape = (fields) => new Shape(fields);

function empty(name = "empty", fields = {}) {
  return new Everything({
    a_bool: false,
    an_i8: 0,
    an_i16: 0,
    an_i32: 0,
    an_i64: new Int64(0),
    a_double: 0,
    a_string: "",
    a_binary: Buffer.alloc(0),
    an_enum: Color.RED,
    a_list: [],
    a_set: [],
    a_map: {},
    a_struct: point(0, 0),
    a_union: shape({ text: "" }),
    a_typedef: new Int64(0),
    required_string: name,
    bools: [],
    doubles: [],
    binaries: [],
    matrix: [],
    deep: {},
    by_color: {},
    shapes: [],
    ...fields,
  });
}

const lowest = (children) =>
  empty("lowest", {
    an_i8: -(2 ** 7),
    an_i16: -(2 ** 15),
    an_i32: -(2 ** 31),
    an_i64: LOWEST_I64,
    a_double: -Infinity,
    a_set: [-(2 ** 31), -1, 0],
    a_map: { "": LOWEST_I64 },
    a_struct: point(-(2 ** 31), -1, ""),
    a_union: shape({ radius: -0 }),
    a_typedef: LOWEST_I64,
    optional_string: "",
    defaulted_i32: -(2 ** 31),
    optional_i64: LOWEST_I64,
    doubles: [-Infinity, -Number.MAX_VALUE, -Number.MIN_VALUE, -0],
    children,
  });

const highest = () =>
  empty("highest", {
    a_bool: true,
    an_i8: 2 ** 7 - 1,
    an_i16: 2 ** 15 - 1,
    an_i32: 2 ** 31 - 1,
    an_i64: HIGHEST_I64,
    a_double: NaN,
    an_enum: Color.ULTRAVIOLET,
    a_set: [2 ** 31 - 1],
    a_map: { max: HIGHEST_I64, odd: new Int64("0020000000000001") },
    a_union: shape({ radius: Infinity }),
    a_typedef: HIGHEST_I64,
    defaulted_i32: 2 ** 31 - 1,
    optional_i64: new Int64(0),
    doubles: [Infinity, Number.MAX_VALUE, Number.MIN_VALUE, NaN, 0.1],
  });

const unicode = () =>
  empty("unicode", {
    a_string: UNICODE,
    a_binary: ALL_BYTES,
    an_enum: Color.BLUE,
    a_list: [UNICODE, "", "\u00fc"],
    a_map: { [UNICODE]: new Int64(1), "\u00fc": new Int64(2) },
    a_struct: point(1, 2, UNICODE),
    a_union: shape({ text: UNICODE }),
    optional_string: UNICODE,
    binaries: [ALL_BYTES, Buffer.alloc(0), Buffer.alloc(2), Buffer.from([0xff, 0xfe])],
    by_color: { [Color.GREEN]: [UNICODE, "\u00fc"] },
    far_field: UNICODE,
  });

const nested = () =>
  empty("nested", {
    a_list: Array.from({ length: 200 }, (_, i) => String(i)),
    a_union: shape({ path: [point(0, 0), point(3, 4)] }),
    optional_struct: point(7, 8, "seven"),
    bools: Array.from({ length: 20 }, (_, i) => i % 3 === 0),
    matrix: [[1, 2], [], Array.from({ length: 20 }, (_, i) => i)],
    deep: { 1: { k: [point(1, 1), point(2, 2, "q")], "": [] }, [-1]: {} },
    by_color: { [Color.RED]: [], [Color.GREEN]: ["leaf", "grass"], [Color.ULTRAVIOLET]: [""] },
    shapes: [
      shape({ dot: point(9, 9) }),
      shape({ path: [] }),
      shape({ path: [point(1, 2)] }),
      shape({ radius: 2.5 }),
      shape({ text: "t" }),
    ],
    children: [empty(), highest(), lowest([unicode()])],
  });

const cases = () => [empty(), lowest(), highest(), unicode(), nested()];

// The value as text: the order of sets and maps does not count, each bit of a double does. A set is an array here, known
// by where it is.
function text(value, set = false) {
  if (value === null || value === undefined) return "unset";
  if (value instanceof Int64) return `i64 ${value.toOctetString()}`;
  if (Buffer.isBuffer(value)) return `bytes ${value.toString("hex")}`;
  if (Array.isArray(value)) {
    const items = value.map((item) => text(item));
    return `[${(set ? items.sort() : items).join(" ")}]`;
  }
  if (typeof value === "object") {
    const entries = Object.keys(value)
      .sort()
      .filter((key) => text(value[key]) !== "unset");
    return `{${entries.map((key) => `${JSON.stringify(key)}:${text(value[key], isSet(value, key))}`).join(" ")}}`;
  }
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  return JSON.stringify(value);
}

const isSet = (parent, key) =>
  parent instanceof Everything ? key === "a_set" : Object.values(parent).every((v) => isArrayOfStrings(v));
const isArrayOfStrings = (value) => Array.isArray(value) && value.every((item) => typeof item === "string");

// The first field that differs, or null.
function difference(got, want) {
  for (const field of Object.keys(want)) {
    const [have, should] = [text(got[field], field === "a_set"), text(want[field], field === "a_set")];
    if (have !== should) return `${field} is ${have.slice(0, 200)}, not ${should.slice(0, 200)}`;
  }
  return null;
}

module.exports = { ALL_BYTES, UNICODE, cases, difference };
