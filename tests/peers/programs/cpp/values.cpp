#include "values.h"

#include <cmath>
#include <limits>
#include <sstream>

#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TDebugProtocol.h>
#include <thrift/transport/TBufferTransports.h>

using namespace echo;
using std::string;

namespace {

template <typename T> T least() { return std::numeric_limits<T>::lowest(); }
template <typename T> T most() { return std::numeric_limits<T>::max(); }

const double INF = std::numeric_limits<double>::infinity();
const double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
const double MIN_DOUBLE = std::numeric_limits<double>::denorm_min();

Point point(int32_t x, int32_t y) {
  Point p;
  p.x = x;
  p.y = y;
  return p;
}

Point point(int32_t x, int32_t y, const string& label) {
  Point p = point(x, y);
  p.__set_label(label);
  return p;
}

Shape dot(const Point& p) {
  Shape s;
  s.__set_dot(p);
  return s;
}

Shape path(const std::vector<Point>& points) {
  Shape s;
  s.__set_path(points);
  return s;
}

Shape radius(double r) {
  Shape s;
  s.__set_radius(r);
  return s;
}

Shape text(const string& t) {
  Shape s;
  s.__set_text(t);
  return s;
}

// Numbers, strings and containers begin as zero and empty; the library always writes those that are not optional.
Everything empty(const string& name = "empty") {
  Everything e;
  e.an_enum = Color::RED;
  e.a_union = text("");
  e.required_string = name;
  return e;
}

Everything lowest() {
  Everything e = empty("lowest");
  e.an_i8 = least<int8_t>();
  e.an_i16 = least<int16_t>();
  e.an_i32 = least<int32_t>();
  e.an_i64 = least<int64_t>();
  e.a_double = -INF;
  e.a_set = {least<int32_t>(), -1, 0};
  e.a_map = {{"", least<int64_t>()}};
  e.a_struct = point(least<int32_t>(), -1, "");
  e.a_union = radius(-0.0);
  e.a_typedef = least<int64_t>();
  e.__set_optional_string("");
  e.defaulted_i32 = least<int32_t>();
  e.__set_optional_i64(least<int64_t>());
  e.doubles = {-INF, least<double>(), -MIN_DOUBLE, -0.0};
  return e;
}

Everything highest() {
  Everything e = empty("highest");
  e.a_bool = true;
  e.an_i8 = most<int8_t>();
  e.an_i16 = most<int16_t>();
  e.an_i32 = most<int32_t>();
  e.an_i64 = most<int64_t>();
  e.a_double = NOT_A_NUMBER;
  e.an_enum = Color::ULTRAVIOLET;
  e.a_set = {most<int32_t>()};
  e.a_map = {{"max", most<int64_t>()}, {"odd", (int64_t(1) << 53) + 1}};
  e.a_union = radius(INF);
  e.a_typedef = most<int64_t>();
  e.defaulted_i32 = most<int32_t>();
  e.__set_optional_i64(0);
  e.doubles = {INF, most<double>(), MIN_DOUBLE, NOT_A_NUMBER, 0.1};
  return e;
}

Everything unicode() {
  Everything e = empty("unicode");
  e.a_string = UNICODE;
  e.a_binary = allBytes();
  e.an_enum = Color::BLUE;
  e.a_list = {UNICODE, "", "\u00fc"};
  e.a_map = {{UNICODE, 1}, {"\u00fc", 2}};
  e.a_struct = point(1, 2, UNICODE);
  e.a_union = text(UNICODE);
  e.__set_optional_string(UNICODE);
  e.binaries = {allBytes(), "", string(2, '\0'), "\xff\xfe"};
  e.by_color[Color::GREEN] = {UNICODE, "\u00fc"};
  e.__set_far_field(UNICODE);
  return e;
}

Everything nested() {
  Everything e = empty("nested");
  for (int i = 0; i < 200; i++) e.a_list.push_back(std::to_string(i));
  e.a_union = path({point(0, 0), point(3, 4)});
  e.__set_optional_struct(point(7, 8, "seven"));
  e.matrix = {{1, 2}, {}, {}};
  for (int i = 0; i < 20; i++) {
    e.bools.push_back(i % 3 == 0);
    e.matrix[2].push_back(i);
  }
  e.deep[1]["k"] = {point(1, 1), point(2, 2, "q")};
  e.deep[1][""] = {};
  e.deep[-1] = {};
  e.by_color[Color::RED] = {};
  e.by_color[Color::GREEN] = {"leaf", "grass"};
  e.by_color[Color::ULTRAVIOLET] = {""};
  e.shapes = {dot(point(9, 9)), path({}), path({point(1, 2)}), radius(2.5), text("t")};
  Everything parent = lowest();
  parent.__set_children({unicode()});
  e.__set_children({empty(), highest(), parent});
  return e;
}

// All NaNs are one.
void oneNan(Everything& e) {
  for (double& d : e.doubles)
    if (std::isnan(d)) d = NOT_A_NUMBER;
  if (std::isnan(e.a_double)) e.a_double = NOT_A_NUMBER;
  for (Everything& child : e.children) oneNan(child);
}

// Sets and maps are sorted, so equal values have equal bytes.
string bytes(const Everything& e) {
  auto buffer = std::make_shared<apache::thrift::transport::TMemoryBuffer>();
  apache::thrift::protocol::TBinaryProtocol protocol(buffer);
  e.write(&protocol);
  return buffer->getBufferAsString();
}

} // namespace

const string UNICODE = string("snowman \u2603, clef \U0001d11e, nul ") + '\0' + ", e\u0301, \u0639\u0631\u0628\u064a";

string allBytes() {
  string all;
  for (int i = 0; i < 256; i++) all.push_back(static_cast<char>(i));
  return all;
}

std::vector<Everything> cases() { return {empty(), lowest(), highest(), unicode(), nested()}; }

string difference(Everything got, Everything want) {
  oneNan(got);
  oneNan(want);
  if (bytes(got) == bytes(want)) return "";
  std::istringstream have(apache::thrift::ThriftDebugString(got)), should(apache::thrift::ThriftDebugString(want));
  string a, b;
  do {
    a.clear();
    b.clear();
    std::getline(have, a);
    std::getline(should, b);
  } while (a == b && have && should);
  return "is " + a + ", not " + b;
}
