// Package bombs holds schemas and arguments that are made to exhaust or crash their reader, for the
// tests of every door through which foreign schemas come.
package bombs

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Bomb is a hostile schema, or a schema with hostile arguments for it.
type Bomb struct {
	Name   string
	Schema string
	Args   string // empty means that the schema alone is the bomb
}

// repeat joins n texts made with %d.
func repeat(n int, format string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.Contains(format, "%") {
			fmt.Fprintf(&b, format, i)
		} else {
			b.WriteString(format)
		}
	}
	return b.String()
}

// nested nests n times.
func nested(n int, open, inside, end string) string {
	return strings.Repeat(open, n) + inside + strings.Repeat(end, n)
}

// field returns an object schema whose field x has the schema s.
func field(s string) string { return `{"type":"object","properties":{"x":` + s + `}}` }

// arg returns arguments with the field x.
func arg(v string) string { return `{"x":` + v + `}` }

func text(n int, of string) string { return `"` + strings.Repeat(of, n) + `"` }

// Schemas returns the bombs that are schemas. None may become a tool.
func Schemas() []Bomb {
	twice := repeat(60, `"d%[1]d":{"anyOf":[{"$ref":"#/$defs/n%[1]d"},{"$ref":"#/$defs/n%[1]d"}]}`)
	for i := range 60 {
		twice = strings.ReplaceAll(twice, fmt.Sprintf("/n%d\"", i), fmt.Sprintf("/d%d\"", i+1))
	}
	return []Bomb{
		{"multipleOf that math/big refuses", field(`{"type":"number","multipleOf":1e-9999999}`), ""},
		{"minimum that math/big refuses", field(`{"type":"number","minimum":1e99999999999999999999}`), ""},
		{"maximum of a billion digits", field(`{"type":"number","maximum":1e999999999}`), ""},
		{"enum of huge numbers", field(`{"enum":[1e9999999,1e-9999999]}`), ""},
		{"const with a huge exponent", field(`{"const":1e-99999999}`), ""},
		{"default with a huge exponent", field(`{"type":"number","default":1e99999999}`), ""},
		{"a number of 100,000 digits", field(`{"type":"number","maximum":` + strings.Repeat("9", 100_000) + `}`), ""},
		{"minLength with a huge exponent", field(`{"type":"string","minLength":1e400000000}`), ""},
		{"nested deeply by items", field(nested(50_000, `{"items":`, `{}`, `}`)), ""},
		{"nested deeply by not", field(nested(50_000, `{"not":`, `{}`, `}`)), ""},
		{"nested deeply by allOf", field(nested(30_000, `{"allOf":[`, `{}`, `]}`)), ""},
		{"100,000 alternatives", field(`{"anyOf":[` + repeat(100_000, `{}`) + `]}`), ""},
		{"10,000 alternatives of types", field(`{"oneOf":[` + repeat(10_000, `{"type":"string"}`) + `]}`), ""},
		{"100,000 properties", `{"type":"object","properties":{` + repeat(100_000, `"p%d":{}`) + `}}`, ""},
		{"an enum of 100,000", field(`{"enum":[` + repeat(100_000, `%d`) + `]}`), ""},
		{"2 MiB of description", `{"type":"object","description":` + text(2<<20, "x") + `}`, ""},
		{"long names above many values", `{"type":"object","properties":{` + text(100_000, "n") + `:{"properties":{` + repeat(9_000, `"p%d":{}`) + `}}}}`, ""},
		{"a pattern of a million states", field(`{"type":"string","pattern":"(((a{100}){100}){100})"}`), ""},
		{"patterns of 200,000 states", field(`{"patternProperties":{` + repeat(200, `"^%d[ab]{900}$":{}`) + `}}`), ""},
		{"a long pattern", field(`{"type":"string","pattern":` + text(100_000, "a?") + `}`), ""},
		{"a reference to itself", field(`{"$ref":"#/properties/x"}`), ""},
		{"references in a circle", `{"type":"object","properties":{"x":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`, ""},
		{"2 to the power of 60 references", `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + twice + `,"d60":{"type":"null"}}}`, ""},
		{"a chain of 5,000 references", `{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{` + chain(5_000) + `,"d5000":{}}}`, ""},
		{"another document", field(`{"$ref":"http://127.0.0.1:1/schema.json"}`), ""},
		{"a file", field(`{"$ref":"file:///etc/passwd"}`), ""},
		{"no JSON", `{"type":"object",`, ""},
		{"a list", `[` + repeat(1000, `{}`) + `]`, ""},
	}
}

func chain(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1)
	}
	return b.String()
}

// Arguments returns bombs whose schemas may be admitted. The arguments must be refused if their
// schema is.
func Arguments() []Bomb {
	list := `{"type":"object","properties":{"x":{"$ref":"#/$defs/l"}},"$defs":{"l":{"anyOf":[{"type":"string","pattern":"^z"},{"type":"array","items":{"$ref":"#/$defs/l"}}]}}}`
	return []Bomb{
		{"a costly pattern", field(`{"type":"string","pattern":"(.*a){900}$"}`), arg(text(50_000, "a"))},
		{"a pattern without an end", field(`{"type":"string","pattern":"(x+x+)+y"}`), arg(text(4_000_000, "x"))},
		{"2,000 patternProperties", field(`{"patternProperties":{` + repeat(2_000, `"a.*%db":{"type":"null"}`) + `}}`), arg(`{` + repeat(5_000, `"aaaaaaaaaaaaaaaaaaaa%d":1`) + `}`)},
		{"unevaluatedProperties under 3,000 branches", field(`{"unevaluatedProperties":false,"anyOf":[` + repeat(3_000, `{"properties":{"p%d":{}}}`) + `]}`), arg(`{` + repeat(5_000, `"k%d":1`) + `}`)},
		{"unevaluatedItems under 3,000 branches", field(`{"unevaluatedItems":false,"anyOf":[` + repeat(3_000, `{"minItems":%d}`) + `]}`), arg(`[` + repeat(20_000, `1`) + `]`)},
		{"an enum of 15,000 numbers", field(`{"type":"array","items":{"enum":[` + repeat(15_000, `%d.5`) + `]}}`), arg(`[` + repeat(20_000, `%d`) + `]`)},
		{"an enum of 15,000 words", field(`{"type":"array","items":{"enum":[` + repeat(15_000, `"w%d"`) + `]}}`), arg(`[` + repeat(20_000, `"v%d"`) + `]`)},
		{"200,000 unknown fields", field(`{"additionalProperties":false,"properties":{` + repeat(500, `"k_%d":{}`) + `}}`), arg(`{` + repeat(200_000, `"k%d":1`) + `}`)},
		{"50,000 unknown fields, names that are near", `{"type":"object","additionalProperties":false,"properties":{` + repeat(900, `"some_name_%d":{}`) + `}}`, `{` + repeat(50_000, `"some-nbme-%d":1`) + `}`},
		{"100,000 unique items", field(`{"type":"array","uniqueItems":true}`), arg(`[` + repeat(100_000, `%d`) + `,1,1]`)},
		{"unique items with long numbers", field(`{"type":"array","uniqueItems":true}`), arg(`[` + repeat(10_000, `%de-999`) + `]`)},
		{"deep values, each wrong", list, arg(nested(5_000, `[`, repeat(50_000, `1`), `]`))},
		{"200 deep, 100,000 wrong", list, arg(nested(200, `[`, repeat(100_000, `1`), `]`))},
		{"120,000 wrong items", field(`{"type":"array","items":{"type":"string","minLength":1}}`), arg(`[` + repeat(120_000, `1`) + `]`)},
		{"5,000 required names, many objects", field(`{"type":"array","items":{"type":"object","required":[` + repeat(5_000, `"r%d"`) + `]}}`), arg(`[` + repeat(50_000, `{}`) + `]`)},
		{"branches with many constants", field(`{"anyOf":[` + repeat(20, `{"properties":{`+constants(200)+`}}`) + `]}`), arg(`{` + repeat(200, `"c%d":"z"`) + `}`)},
		{"multipleOf with long numbers", field(`{"type":"array","items":{"multipleOf":1e-399}}`), arg(`[` + repeat(20_000, `1.`+strings.Repeat("7", 200)+`e-900`) + `]`)},
		{"the schema of schemas", field(`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`), arg(nested(100, `{"allOf":[`, repeat(20_000, `{"type":"x"}`), `]}`))},
		{"patterns as arguments", field(`{"type":"array","items":{"type":"string","format":"regex"}}`), arg(`[` + repeat(5_000, `"((a{90}){90}){%d0}"`) + `]`)},
		{"a large text against 1,000 branches", field(`{"anyOf":[` + repeat(1_000, `{"type":"string","maxLength":%d}`) + `]}`), arg(text(2_000_000, "q"))},
	}
}

func constants(n int) string { return repeat(n, `"c%d":{"const":"y"}`) }

// All returns all bombs.
func All() []Bomb { return append(Schemas(), Arguments()...) }

// Valid returns s if it is JSON, and "" if a document could not contain it.
func Valid(s string) string {
	if !json.Valid([]byte(s)) {
		return ""
	}
	return s
}
