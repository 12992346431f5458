package main

import (
	"context"
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/apache/thrift/lib/go/thrift"
)

// A value of any Thrift type, read and written by its own type code, so that no generated code is needed.
type value struct {
	of    thrift.TType
	any   any          // a bool, number or []byte
	elem  thrift.TType // of a list, set, or a map's values
	key   thrift.TType // of a map
	items []value      // of a list, set, or a map's values
	keys  []value      // of a map
	ids   []int16      // of a struct; items are its fields
}

func read(ctx context.Context, p thrift.TProtocol, of thrift.TType) (v value, err error) {
	v.of = of
	switch of {
	case thrift.BOOL:
		v.any, err = p.ReadBool(ctx)
	case thrift.BYTE:
		v.any, err = p.ReadByte(ctx)
	case thrift.I16:
		v.any, err = p.ReadI16(ctx)
	case thrift.I32:
		v.any, err = p.ReadI32(ctx)
	case thrift.I64:
		v.any, err = p.ReadI64(ctx)
	case thrift.DOUBLE:
		v.any, err = p.ReadDouble(ctx)
	case thrift.STRING:
		v.any, err = p.ReadBinary(ctx)
	case thrift.STRUCT:
		return readStruct(ctx, p)
	case thrift.LIST, thrift.SET:
		return readItems(ctx, p, of)
	case thrift.MAP:
		return readMap(ctx, p)
	default:
		err = fmt.Errorf("type %d", of)
	}
	return v, err
}

func readStruct(ctx context.Context, p thrift.TProtocol) (v value, err error) {
	v.of = thrift.STRUCT
	if _, err = p.ReadStructBegin(ctx); err != nil {
		return v, err
	}
	for {
		_, of, id, err := p.ReadFieldBegin(ctx)
		if err != nil {
			return v, err
		}
		if of == thrift.STOP {
			return v, p.ReadStructEnd(ctx)
		}
		field, err := read(ctx, p, of)
		if err != nil {
			return v, err
		}
		v.ids, v.items = append(v.ids, id), append(v.items, field)
		if err = p.ReadFieldEnd(ctx); err != nil {
			return v, err
		}
	}
}

func readItems(ctx context.Context, p thrift.TProtocol, of thrift.TType) (v value, err error) {
	v.of = of
	begin, end := p.ReadListBegin, p.ReadListEnd
	if of == thrift.SET {
		begin, end = p.ReadSetBegin, p.ReadSetEnd
	}
	elem, n, err := begin(ctx)
	if err != nil {
		return v, err
	}
	v.elem = elem
	for i := 0; i < n; i++ {
		item, err := read(ctx, p, elem)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, item)
	}
	return v, end(ctx)
}

func readMap(ctx context.Context, p thrift.TProtocol) (v value, err error) {
	v.of = thrift.MAP
	var n int
	if v.key, v.elem, n, err = p.ReadMapBegin(ctx); err != nil {
		return v, err
	}
	for i := 0; i < n; i++ {
		k, err := read(ctx, p, v.key)
		if err != nil {
			return v, err
		}
		item, err := read(ctx, p, v.elem)
		if err != nil {
			return v, err
		}
		v.keys, v.items = append(v.keys, k), append(v.items, item)
	}
	return v, p.ReadMapEnd(ctx)
}

func (v value) write(ctx context.Context, p thrift.TProtocol) error {
	switch v.of {
	case thrift.BOOL:
		return p.WriteBool(ctx, v.any.(bool))
	case thrift.BYTE:
		return p.WriteByte(ctx, v.any.(int8))
	case thrift.I16:
		return p.WriteI16(ctx, v.any.(int16))
	case thrift.I32:
		return p.WriteI32(ctx, v.any.(int32))
	case thrift.I64:
		return p.WriteI64(ctx, v.any.(int64))
	case thrift.DOUBLE:
		return p.WriteDouble(ctx, v.any.(float64))
	case thrift.STRING:
		return p.WriteBinary(ctx, v.any.([]byte))
	case thrift.STRUCT:
		return v.writeStruct(ctx, p)
	}
	var err error
	end := p.WriteListEnd
	switch v.of {
	case thrift.LIST:
		err = p.WriteListBegin(ctx, v.elem, len(v.items))
	case thrift.SET:
		err, end = p.WriteSetBegin(ctx, v.elem, len(v.items)), p.WriteSetEnd
	default:
		err, end = p.WriteMapBegin(ctx, v.key, v.elem, len(v.items)), p.WriteMapEnd
	}
	for i := 0; err == nil && i < len(v.items); i++ {
		if v.of == thrift.MAP {
			if err = v.keys[i].write(ctx, p); err != nil {
				return err
			}
		}
		err = v.items[i].write(ctx, p)
	}
	if err != nil {
		return err
	}
	return end(ctx)
}

func (v value) writeStruct(ctx context.Context, p thrift.TProtocol) error {
	if err := p.WriteStructBegin(ctx, ""); err != nil {
		return err
	}
	for i, field := range v.items {
		if err := p.WriteFieldBegin(ctx, "", field.of, v.ids[i]); err != nil {
			return err
		}
		if err := field.write(ctx, p); err != nil {
			return err
		}
		if err := p.WriteFieldEnd(ctx); err != nil {
			return err
		}
	}
	if err := p.WriteFieldStop(ctx); err != nil {
		return err
	}
	return p.WriteStructEnd(ctx)
}

// The value as text in which the order of fields, sets and maps does not count, nor the element types of empty ones.
func (v value) String() string {
	var parts []string
	for i, item := range v.items {
		switch v.of {
		case thrift.STRUCT:
			parts = append(parts, fmt.Sprintf("%d:%v", v.ids[i], item))
		case thrift.MAP:
			parts = append(parts, fmt.Sprintf("%v:%v", v.keys[i], item))
		default:
			parts = append(parts, item.String())
		}
	}
	switch v.of {
	case thrift.STRUCT, thrift.SET, thrift.MAP:
		sort.Strings(parts)
	case thrift.LIST:
	case thrift.STRING:
		return fmt.Sprintf("%q", v.any)
	default:
		return fmt.Sprint(v.any)
	}
	return fmt.Sprintf("%d(%s)", v.of, strings.Join(parts, " "))
}

func scalar(of thrift.TType, x any) value { return value{of: of, any: x} }
func text(s string) value                 { return scalar(thrift.STRING, []byte(s)) }
func i32(n int32) value                   { return scalar(thrift.I32, n) }

func list(elem thrift.TType, items ...value) value {
	return value{of: thrift.LIST, elem: elem, items: items}
}

// A struct of (id, value) pairs in turn.
func structOf(pairs ...any) value {
	v := value{of: thrift.STRUCT}
	for i := 0; i < len(pairs); i += 2 {
		v.ids, v.items = append(v.ids, int16(pairs[i].(int))), append(v.items, pairs[i+1].(value))
	}
	return v
}

// The field with an id.
func (v value) field(id int16) (value, bool) {
	for i, have := range v.ids {
		if have == id {
			return v.items[i], true
		}
	}
	return value{}, false
}

func point(x, y int32) value { return structOf(1, i32(x), 2, i32(y)) }

// A struct Everything with something in every field, and the ends of the ranges of the numbers.
func everything(children bool) value {
	set := func(elem thrift.TType, items ...value) value { return value{of: thrift.SET, elem: elem, items: items} }
	bytes := make([]byte, 256)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	bools := list(thrift.BOOL, scalar(thrift.BOOL, true), scalar(thrift.BOOL, false))
	counts := value{of: thrift.MAP, key: thrift.STRING, elem: thrift.I64, keys: []value{text("x"), text("y")},
		items: []value{scalar(thrift.I64, int64(math.MaxInt64)), scalar(thrift.I64, int64(0))}}
	inner := value{of: thrift.MAP, key: thrift.STRING, elem: thrift.LIST, keys: []value{text("k")},
		items: []value{list(thrift.STRUCT, point(1, 1), point(2, 2))}}
	v := structOf(
		1, scalar(thrift.BOOL, children), 2, scalar(thrift.BYTE, int8(-128)), 3, scalar(thrift.I16, int16(-32768)),
		4, i32(math.MinInt32), 5, scalar(thrift.I64, int64(math.MinInt64)), 6, scalar(thrift.DOUBLE, -0.1),
		7, text("snowman \u2603, clef \U0001d11e, nul \x00"), 8, scalar(thrift.STRING, bytes), 9, i32(100),
		10, list(thrift.STRING, text("a"), text("")), 11, set(thrift.I32, i32(3), i32(-1), i32(math.MaxInt32)),
		12, counts, 13, structOf(1, i32(1), 2, i32(-2), 3, text("p")),
		14, structOf(2, list(thrift.STRUCT, point(0, 0), point(3, 4))),
		15, scalar(thrift.I64, int64(1600000000000000)), 16, text("here"), 17, text("set"), 18, i32(-42),
		19, scalar(thrift.I64, int64(0)), 20, point(7, 8), 21, bools,
		22, list(thrift.DOUBLE, scalar(thrift.DOUBLE, 0.0), scalar(thrift.DOUBLE, 1.5e300)),
		23, list(thrift.STRING, text("\x00\xff"), text("")),
		24, list(thrift.LIST, list(thrift.I32, i32(1), i32(2)), list(thrift.I32)),
		25, value{of: thrift.MAP, key: thrift.I32, elem: thrift.MAP, keys: []value{i32(1)}, items: []value{inner}},
		26, value{of: thrift.MAP, key: thrift.I32, elem: thrift.SET, keys: []value{i32(1)},
			items: []value{set(thrift.STRING, text("leaf"), text("grass"))}},
		27, list(thrift.STRUCT, structOf(1, point(9, 9)), structOf(3, scalar(thrift.DOUBLE, 2.5)), structOf(4, text("t"))),
		1000, text("far"))
	if children {
		v.ids, v.items = append(v.ids, 28), append(v.items, list(thrift.STRUCT, everything(false)))
	}
	return v
}
