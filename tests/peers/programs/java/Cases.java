import echo.Color;
import echo.Everything;
import echo.Point;
import echo.Shape;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.thrift.TException;
import org.apache.thrift.TSerializer;
import org.apache.thrift.protocol.TBinaryProtocol;

/** The cases of ../README.md, and how two values of a case differ. */
final class Cases {
  static final String UNICODE =
      "snowman \u2603, clef \uD834\uDD1E, nul \0, e\u0301, \u0639\u0631\u0628\u064a";

  private Cases() {}

  static ByteBuffer allBytes() {
    byte[] all = new byte[256];
    for (int i = 0; i < all.length; i++) all[i] = (byte) i;
    return ByteBuffer.wrap(all);
  }

  private static ByteBuffer bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < bytes.length; i++) bytes[i] = (byte) values[i];
    return ByteBuffer.wrap(bytes);
  }

  private static Point point(int x, int y) {
    return new Point(x, y);
  }

  private static Point point(int x, int y, String label) {
    return new Point(x, y).setLabel(label);
  }

  @SafeVarargs
  private static <T> List<T> list(T... items) {
    return new ArrayList<>(Arrays.asList(items));
  }

  @SafeVarargs
  private static <T> Set<T> set(T... items) {
    return new TreeSet<>(Arrays.asList(items));
  }

  private static <K, V> Map<K, V> map() {
    return new TreeMap<>();
  }

  private static <K, V> Map<K, V> map(K key, V value) {
    Map<K, V> map = new TreeMap<>();
    map.put(key, value);
    return map;
  }

  private static <K, V> Map<K, V> map(K key, V value, K key2, V value2) {
    Map<K, V> map = map(key, value);
    map.put(key2, value2);
    return map;
  }

  private static Everything empty() {
    return new Everything()
        .setA_bool(false).setAn_i8((byte) 0).setAn_i16((short) 0).setAn_i32(0).setAn_i64(0).setA_double(0)
        .setA_string("").setA_binary(bytes()).setAn_enum(Color.RED)
        .setA_list(list()).setA_set(set()).setA_map(map())
        .setA_struct(point(0, 0)).setA_union(Shape.text("")).setA_typedef(0).setRequired_string("empty")
        .setBools(list()).setDoubles(list()).setBinaries(list()).setMatrix(list())
        .setDeep(map()).setBy_color(map()).setShapes(list());
  }

  private static Everything lowest() {
    double inf = Double.NEGATIVE_INFINITY;
    return empty().setRequired_string("lowest")
        .setAn_i8(Byte.MIN_VALUE).setAn_i16(Short.MIN_VALUE).setAn_i32(Integer.MIN_VALUE).setAn_i64(Long.MIN_VALUE)
        .setA_double(inf).setA_set(set(Integer.MIN_VALUE, -1, 0)).setA_map(map("", Long.MIN_VALUE))
        .setA_struct(point(Integer.MIN_VALUE, -1, "")).setA_union(Shape.radius(-0.0)).setA_typedef(Long.MIN_VALUE)
        .setOptional_string("").setDefaulted_i32(Integer.MIN_VALUE).setOptional_i64(Long.MIN_VALUE)
        .setDoubles(list(inf, -Double.MAX_VALUE, -Double.MIN_VALUE, -0.0));
  }

  private static Everything highest() {
    double inf = Double.POSITIVE_INFINITY;
    return empty().setRequired_string("highest").setA_bool(true)
        .setAn_i8(Byte.MAX_VALUE).setAn_i16(Short.MAX_VALUE).setAn_i32(Integer.MAX_VALUE).setAn_i64(Long.MAX_VALUE)
        .setA_double(Double.NaN).setAn_enum(Color.ULTRAVIOLET).setA_set(set(Integer.MAX_VALUE))
        .setA_map(map("max", Long.MAX_VALUE, "odd", (1L << 53) + 1)).setA_union(Shape.radius(inf))
        .setA_typedef(Long.MAX_VALUE).setDefaulted_i32(Integer.MAX_VALUE).setOptional_i64(0)
        .setDoubles(list(inf, Double.MAX_VALUE, Double.MIN_VALUE, Double.NaN, 0.1));
  }

  private static Everything unicode() {
    return empty().setRequired_string("unicode").setA_string(UNICODE).setA_binary(allBytes()).setAn_enum(Color.BLUE)
        .setA_list(list(UNICODE, "", "\u00fc")).setA_map(map(UNICODE, 1L, "\u00fc", 2L))
        .setA_struct(point(1, 2, UNICODE)).setA_union(Shape.text(UNICODE)).setOptional_string(UNICODE)
        .setBinaries(list(allBytes(), bytes(), bytes(0, 0), bytes(0xff, 0xfe)))
        .setBy_color(map(Color.GREEN, set(UNICODE, "\u00fc"))).setFar_field(UNICODE);
  }

  private static Everything nested() {
    List<String> names = new ArrayList<>();
    for (int i = 0; i < 200; i++) names.add(String.valueOf(i));
    List<Integer> numbers = new ArrayList<>();
    List<Boolean> bools = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      numbers.add(i);
      bools.add(i % 3 == 0);
    }
    Map<Color, Set<String>> byColor = map(Color.RED, set(), Color.GREEN, set("leaf", "grass"));
    byColor.put(Color.ULTRAVIOLET, set(""));
    Map<String, List<Point>> deep = map("k", list(point(1, 1), point(2, 2, "q")), "", list());
    return empty().setRequired_string("nested").setA_list(names)
        .setA_union(Shape.path(list(point(0, 0), point(3, 4)))).setOptional_struct(point(7, 8, "seven"))
        .setBools(bools).setMatrix(list(list(1, 2), list(), numbers)).setDeep(map(1, deep, -1, map()))
        .setBy_color(byColor)
        .setShapes(list(Shape.dot(point(9, 9)), Shape.path(list()), Shape.path(list(point(1, 2))), Shape.radius(2.5),
            Shape.text("t")))
        .setChildren(list(empty(), highest(), lowest().setChildren(list(unicode()))));
  }

  static List<Everything> all() {
    return list(empty(), lowest(), highest(), unicode(), nested());
  }

  /** The first field that differs, or null. The containers are sorted ones, so equal values have equal bytes. */
  static String difference(Everything got, Everything want) throws TException {
    for (Everything._Fields field : Everything._Fields.values()) {
      if (!Arrays.equals(bytes(got, field), bytes(want, field))) {
        return field.getFieldName() + " is " + shown(got, field) + ", not " + shown(want, field);
      }
    }
    return null;
  }

  private static byte[] bytes(Everything e, Everything._Fields field) throws TException {
    Everything one = new Everything().setRequired_string("");
    one.unsetDefaulted_i32();
    if (e.isSet(field)) one.setFieldValue(field, e.getFieldValue(field));
    return new TSerializer(new TBinaryProtocol.Factory()).serialize(one);
  }

  private static String shown(Everything e, Everything._Fields field) {
    return e.isSet(field) ? String.format("%.200s", e.getFieldValue(field)) : "unset";
  }
}
