// The service that the peers of tests/peers serve and call, each in its own language with its own Thrift library.
//
// Echo is also what the Finagle kit serves: names, ids and types must stay as they are there. Peer adds what Echo has no
// method for. Beyond is what clients are generated from: its method is one that no server knows.

namespace * echo

enum Color {
  RED = 0,
  GREEN = 1,
  BLUE = 2,
  ULTRAVIOLET = 100
}

typedef i64 Micros

struct Point {
  1: required i32 x,
  2: required i32 y,
  3: optional string label
}

union Shape {
  1: Point dot,
  2: list<Point> path,
  3: double radius,
  4: string text
}

exception EchoError {
  1: string why,
  2: i32 code
}

// Every type of the IDL, and every requiredness.
struct Everything {
  1: bool a_bool,
  2: i8 an_i8,
  3: i16 an_i16,
  4: i32 an_i32,
  5: i64 an_i64,
  6: double a_double,
  7: string a_string,
  8: binary a_binary,
  9: Color an_enum,
  10: list<string> a_list,
  11: set<i32> a_set,
  12: map<string, i64> a_map,
  13: Point a_struct,
  14: Shape a_union,
  15: Micros a_typedef,
  // The name of the case. A peer that knows a case of that name compares what it got with it, and says here what differs.
  16: required string required_string,
  17: optional string optional_string,
  18: i32 defaulted_i32 = 42,
  19: optional i64 optional_i64,
  20: optional Point optional_struct,
  21: list<bool> bools,
  22: list<double> doubles,
  23: list<binary> binaries,
  24: list<list<i32>> matrix,
  25: map<i32, map<string, list<Point>>> deep,
  26: map<Color, set<string>> by_color,
  27: list<Shape> shapes,
  28: optional list<Everything> children,
  // Far from the one before: the compact protocol writes it as a whole id instead of a difference.
  1000: optional string far_field
}

service Echo {
  // Returns s.
  string echo(1: string s),

  // Returns b.
  binary blob(1: binary b),

  // Returns s after delay_ms milliseconds.
  string slow(1: string s, 2: i32 delay_ms),

  // Throws EchoError(why, 418); "" is returned.
  string fail(1: string why) throws (1: EchoError e),

  // Not answered; counted by what it says.
  oneway void fire(1: string s),

  // Returns e, decoded and encoded again by the peer's generated code.
  Everything everything(1: Everything e)
}

service Peer extends Echo {
  // How often fire was called with s.
  i32 heard(1: string s),

  // Returns nothing. Throws EchoError(why, 418) unless why is "".
  void nothing(1: string why) throws (1: EchoError e)
}

service Beyond extends Peer {
  // Nobody serves this.
  string missing(1: string s)
}
