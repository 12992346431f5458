package main

import (
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"muxgate/peers/echo"
)

const unicode = "snowman \u2603, clef \U0001d11e, nul \x00, e\u0301, \u0639\u0631\u0628\u064a"

func allBytes() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

func ptr[T any](v T) *T { return &v }

func point(x, y int32) *echo.Point { return &echo.Point{X: x, Y: y} }

func labelled(x, y int32, label string) *echo.Point { return &echo.Point{X: x, Y: y, Label: &label} }

func empty() *echo.Everything {
	e := echo.NewEverything()
	e.ABinary = []byte{}
	e.AList = []string{}
	e.ASet = []int32{}
	e.AMap = map[string]int64{}
	e.AStruct = point(0, 0)
	e.AUnion = &echo.Shape{Text: ptr("")}
	e.RequiredString = "empty"
	e.Bools = []bool{}
	e.Doubles = []float64{}
	e.Binaries = [][]byte{}
	e.Matrix = [][]int32{}
	e.Deep = map[int32]map[string][]*echo.Point{}
	e.ByColor = map[echo.Color][]string{}
	e.Shapes = []*echo.Shape{}
	return e
}

func lowest() *echo.Everything {
	e := empty()
	e.RequiredString = "lowest"
	e.AnI8, e.AnI16, e.AnI32, e.AnI64 = math.MinInt8, math.MinInt16, math.MinInt32, math.MinInt64
	e.ADouble = math.Inf(-1)
	e.ASet = []int32{math.MinInt32, -1, 0}
	e.AMap = map[string]int64{"": math.MinInt64}
	e.AStruct = labelled(math.MinInt32, -1, "")
	e.AUnion = &echo.Shape{Radius: ptr(math.Copysign(0, -1))}
	e.ATypedef = math.MinInt64
	e.OptionalString = ptr("")
	e.DefaultedI32 = math.MinInt32
	e.OptionalI64 = ptr[int64](math.MinInt64)
	e.Doubles = []float64{math.Inf(-1), -math.MaxFloat64, -math.SmallestNonzeroFloat64, math.Copysign(0, -1)}
	return e
}

func highest() *echo.Everything {
	e := empty()
	e.RequiredString = "highest"
	e.ABool = true
	e.AnI8, e.AnI16, e.AnI32, e.AnI64 = math.MaxInt8, math.MaxInt16, math.MaxInt32, math.MaxInt64
	e.ADouble = math.NaN()
	e.AnEnum = echo.Color_ULTRAVIOLET
	e.ASet = []int32{math.MaxInt32}
	e.AMap = map[string]int64{"max": math.MaxInt64, "odd": 1<<53 + 1}
	e.AUnion = &echo.Shape{Radius: ptr(math.Inf(1))}
	e.ATypedef = math.MaxInt64
	e.DefaultedI32 = math.MaxInt32
	e.OptionalI64 = ptr[int64](0)
	e.Doubles = []float64{math.Inf(1), math.MaxFloat64, math.SmallestNonzeroFloat64, math.NaN(), 0.1}
	return e
}

func unicodes() *echo.Everything {
	e := empty()
	e.RequiredString = "unicode"
	e.AString = unicode
	e.ABinary = allBytes()
	e.AnEnum = echo.Color_BLUE
	e.AList = []string{unicode, "", "\u00fc"}
	e.AMap = map[string]int64{unicode: 1, "\u00fc": 2}
	e.AStruct = labelled(1, 2, unicode)
	e.AUnion = &echo.Shape{Text: ptr(unicode)}
	e.OptionalString = ptr(unicode)
	e.Binaries = [][]byte{allBytes(), {}, {0, 0}, {0xff, 0xfe}}
	e.ByColor = map[echo.Color][]string{echo.Color_GREEN: {unicode, "\u00fc"}}
	e.FarField = ptr(unicode)
	return e
}

func nested() *echo.Everything {
	e := empty()
	e.RequiredString = "nested"
	for i := 0; i < 200; i++ {
		e.AList = append(e.AList, strconv.Itoa(i))
	}
	e.AUnion = &echo.Shape{Path: []*echo.Point{point(0, 0), point(3, 4)}}
	e.OptionalStruct = labelled(7, 8, "seven")
	numbers := []int32{}
	for i := int32(0); i < 20; i++ {
		e.Bools = append(e.Bools, i%3 == 0)
		numbers = append(numbers, i)
	}
	e.Matrix = [][]int32{{1, 2}, {}, numbers}
	e.Deep = map[int32]map[string][]*echo.Point{1: {"k": {point(1, 1), labelled(2, 2, "q")}, "": {}}, -1: {}}
	e.ByColor = map[echo.Color][]string{
		echo.Color_RED: {}, echo.Color_GREEN: {"leaf", "grass"}, echo.Color_ULTRAVIOLET: {""},
	}
	e.Shapes = []*echo.Shape{
		{Dot: point(9, 9)}, {Path: []*echo.Point{}}, {Path: []*echo.Point{point(1, 2)}}, {Radius: ptr(2.5)}, {Text: ptr("t")},
	}
	parent := lowest()
	parent.Children = []*echo.Everything{unicodes()}
	e.Children = []*echo.Everything{empty(), highest(), parent}
	return e
}

func cases() []*echo.Everything {
	return []*echo.Everything{empty(), lowest(), highest(), unicodes(), nested()}
}

// The fields of two structs Everything that differ; "" if none does.
func difference(got, want *echo.Everything) string {
	sortSets(got)
	sortSets(want)
	g, w := reflect.ValueOf(got).Elem(), reflect.ValueOf(want).Elem()
	for i := 0; i < g.NumField(); i++ {
		if have, should := text(g.Field(i)), text(w.Field(i)); have != should {
			return fmt.Sprintf("%s is %.200s, not %.200s", g.Type().Field(i).Name, have, should)
		}
	}
	return ""
}

// Sets are slices in Go.
func sortSets(e *echo.Everything) {
	sort.Slice(e.ASet, func(i, j int) bool { return e.ASet[i] < e.ASet[j] })
	for _, names := range e.ByColor {
		sort.Strings(names)
	}
	for _, child := range e.Children {
		sortSets(child)
	}
}

// The value as text: the order of maps does not count, each bit of a double does, nil is not empty.
func text(v reflect.Value) string {
	var parts []string
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "unset"
		}
		return text(v.Elem())
	case reflect.Struct:
		for i := 0; i < v.NumField(); i++ {
			parts = append(parts, v.Type().Field(i).Name+"="+text(v.Field(i)))
		}
	case reflect.Slice:
		if v.IsNil() {
			return "unset"
		}
		for i := 0; i < v.Len(); i++ {
			parts = append(parts, text(v.Index(i)))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			parts = append(parts, text(key)+":"+text(v.MapIndex(key)))
		}
		sort.Strings(parts)
	case reflect.Float64:
		if math.IsNaN(v.Float()) {
			return "NaN"
		}
		return fmt.Sprintf("%x", math.Float64bits(v.Float()))
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Uint8:
		return strconv.FormatUint(v.Uint(), 16)
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
	return "(" + strings.Join(parts, " ") + ")"
}
