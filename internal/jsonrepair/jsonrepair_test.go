package jsonrepair_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/jsonrepair"
)

func ExampleRepair() {
	fixed, repairs, err := jsonrepair.Repair([]byte("Sure!\n```json\n{path: 'a.txt', \"lines\": [1, 2,], \"force\": True}\n```"))
	fmt.Printf("%s\n%s\n%v\n", fixed, strings.Join(repairs, "\n"), err)
	_, _, err = jsonrepair.Repair([]byte(`{"path": "a.txt", "content": "first li`))
	fmt.Println(err)
	// Output:
	// {"path":"a.txt","lines":[1,2],"force":true}
	// removed the text before the object
	// quoted the name path
	// replaced single quotes
	// removed a trailing comma
	// wrote True as true
	// removed a code fence
	// <nil>
	// it ends too early: a string is not closed
}

func TestMends(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,}`:                          `{"a":1} | removed a trailing comma`,
		`{"a":[1,2 , ] , }`:                 `{"a":[1,2]} | removed a trailing comma`,
		`{,"a":1,,"b":2}`:                   `{"a":1,"b":2} | removed a surplus comma`,
		`{"a":1 "b":"x""c":2}`:              `{"a":1,"b":"x","c":2} | added a missing comma`,
		"{\"a\":1\nb:2}":                    `{"a":1,"b":2} | quoted the name b | added a missing comma`,
		`[{"a":1}{"a":2} [3]]`:              `[{"a":1},{"a":2},[3]] | added a missing comma`,
		`["a" "b"]`:                         `["a","b"] | added a missing comma`,
		"[1\n2]":                            `[1,2] | added a missing comma`,
		`{'a': 'it\'s "so"', 'b': 'don't'}`: `{"a":"it's \"so\"","b":"don't"} | replaced single quotes | removed the backslash from an escaped quote`,
		`{“a”: “x "y"”, ‘b’: ‘it’s’}`: `{"a":"x \"y\"","b":"it’s"} | replaced typographic quotes`,
		"{`a`: `b`}":                                         `{"a":"b"} | replaced back quotes`,
		`{a_1: 1, $b-c.d: 2, é: 3, 4: 5}`:                    `{"a_1":1,"$b-c.d":2,"é":3,"4":5} | quoted the name a_1 | quoted the name $b-c.d | quoted the name é | quoted the name 4`,
		`{"a": True, "b": False, "c": None}`:                 `{"a":true,"b":false,"c":null} | wrote True as true | wrote False as false | wrote None as null`,
		`{"a": +1, "b": -.5, "c": 2., "d": 1}`:               `{"a":1,"b":-0.5,"c":2.0,"d":1} | wrote the number +1 as 1 | wrote the number -.5 as -0.5 | wrote the number 2. as 2.0`,
		"{\"a\": 1, // one\n/* two */ \"b\": 2 # three\n}":   `{"a":1,"b":2} | removed a comment`,
		`{"url": "http://x/#y", } // done`:                   `{"url":"http://x/#y"} | removed a trailing comma | removed a comment`,
		"\ufeff{\"a\":\u00a01}":                              `{"a":1} | removed a byte order mark | removed an odd space`,
		"```json\n{\"a\":1}\n```":                            `{"a":1} | removed a code fence`,
		"```\n{\"a\":\"```x```\"}\n```\nDone.":               "{\"a\":\"```x```\"} | removed a code fence | removed the text after the object",
		`Here you are (for {city}): {"a":1}. Good luck!`:     `{"a":1} | removed the text before the object | removed the text after the object`,
		`get_weather({"a":1});`:                              `{"a":1} | removed the text before the object | removed a closing bracket after the end | removed a comma after the end`,
		`{"a":1}}]`:                                          `{"a":1} | removed a closing bracket after the end`,
		`{"a":1},`:                                           `{"a":1} | removed a comma after the end`,
		"{\"a\":1,\"b\":2}\n{\"b\":2,\"a\":1}":               `{"a":1,"b":2} | removed a copy of the object`,
		`{"a":1,"a":1,}`:                                     `{"a":1} | removed a repeated member | removed a trailing comma`,
		"{\"a\":\"x\ny\tz\"}":                                `{"a":"x\ny\tz"} | escaped a line break or a tab in a string`,
		`{"re":"^\d+\.\w \\ \" \/ é"}`:                       `{"re":"^\\d+\\.\\w \\ \" \/ é"} | wrote an unknown escape as the backslash it is`,
		`{"a":"x" + 'y' + "z"}`:                              `{"a":"xyz"} | replaced single quotes | joined strings written with +`,
		`{\"a\": \"x \\\"y\\\"\"}`:                           `{"a": "x \"y\""} | removed one level of escapes`,
		`'{"a": 1}'`:                                         `"{\"a\": 1}" | replaced single quotes`,
		"\"{\n\\\"a\\\": 1}\"":                               `"{\n\"a\": 1}" | escaped a line break or a tab in a string`,
		`[1,2,]`:                                             `[1,2] | removed a trailing comma`,
		"```json{\"a\":1}```":                                `{"a":1} | removed a code fence`,
		"Here: ```json{\"a\":1}```":                          `{"a":1} | removed the text before the object | removed a code fence`,
		"{\"a\":1}\n```":                                     `{"a":1} | removed a code fence`,
		"```\n{\"a\":1}\n```\nor:\n```json\n{\"a\": 1}\n```": `{"a":1} | removed a code fence | removed the text after the object | removed a copy of the object`,
		"{\"bad utf\":\"\xff\",}":                            "{\"bad utf\":\"\xff\"} | removed a trailing comma",
	} {
		fixed, repairs, err := jsonrepair.Repair([]byte(text))
		got := strings.Join(append([]string{string(fixed)}, repairs...), " | ")
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s: got -, want +\n%s", text, diff)
		}
	}
}

func TestRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:                               "nothing in it",
		`no idea`:                        "no JSON object",
		`{"a": NaN}`:                     "JSON has no NaN",
		`{"a": -Infinity}`:               "JSON has no -Infinity",
		`{"a": undefined}`:               "JSON has no undefined",
		`{"a": }`:                        "a value is missing",
		`{"a": Oslo}`:                    "text without quotes: Oslo",
		`{"a": True love}`:               "name was wanted|no colon|no comma",
		`{"a": 05}`:                      "05 is not a JSON number",
		`{"a": 1/3}`:                     "1/3 is not a JSON number",
		`[1,,2]`:                         "a value is missing",
		`[,1]`:                           "a value is missing",
		`[1,...]`:                        "not a JSON number",
		`["a""b"]`:                       "no comma",
		`["say " 5 " now"]`:              "no comma",
		`[10 000]`:                       "no comma",
		`["a" b]`:                        "no comma",
		`{"a": "x "y" z"}`:               `no colon after the name "y"`,
		`{"a": "He said "": "x"}`:        "no colon",
		`{"a": "x" "": 1}`:               "no comma before the name",
		`{"a": "Use " b: "x"}`:           "no comma before the name",
		`{"a":"x, "b":"y"}`:              "no colon",
		`{"a" 1}`:                        "no colon",
		`{"a":1,"a":2,}`:                 `"a" occurs twice`,
		`{"a":1} {"a":2}`:                "two objects",
		`{"a":1}, "b": 2}`:               "follows after its end",
		`{"a":1} "b": 2}`:                "follows after its end",
		`{"a":1}[2]`:                     "follows after its end",
		`{"a":1} and so on }`:            "follows after its end",
		`f(1, {"a":1})`:                  "part of something",
		`"args": {"a":1}`:                "follows after its end",
		`all: [{"a":1}]`:                 "part of something",
		`see } {"a":1}`:                  "no JSON object",
		`[{"a":1]`:                       "name was wanted",
		`{"a":[1}`:                       "no comma",
		`{"a":{"b":[1}}}`:                "no comma",
		`{"p":"C:\Users\new"}`:           `no escape \U`,
		`{"p":"C:\Dir\new"}`:             "may or may not be escapes",
		`{"p":"\$HOME"}`:                 `no escape \$`,
		`{"p":"\x41"}`:                   `no escape \x`,
		"{\"p\":\"a\\\nb\"}":             "no escape",
		`{"p":"\uZ000"}`:                 "four hexadecimal digits",
		"{\"p\":\"a\x00b\"}":             "control character",
		"{\"p\n\":1}":                    "line break",
		`{"a": "x" + y}`:                 "is joined to a string",
		"{\"a\": `x ${y}`}":              "template",
		`'just words'`:                   "contains no JSON",
		`{\"a\": "x"}`:                   "not all",
		`{{"a":1}}`:                      "name was wanted",
		strings.Repeat("[", 1001) + "1,": "nested too deeply",

		// Two fenced blocks, and words that are glued to the object.
		"```json\n{\"a\":1}\n```\n```json\n{\"a\":2}\n```": "two objects",
		"```json\n{\"a\":1}\n```\nor\n```json\n[2]\n```":   "two fenced blocks",
		"```json\n{\"a\":1}\n```\n```yaml\na: 2\n```":      "two fenced blocks",
		"```json\n{\"a\":1}\n```\n```json\n\"x\"\n```":     "two fenced blocks",
		"```\nx\n```\n```json\n{\"a\":1}\n```":             "two fenced blocks",
		"See ```x``` and ```\n{\"a\":1}\n```":              "two fenced blocks",
		"{\"a\":1}\n```json\n[2]\n```":                     "two fenced blocks",
		"```json\n[1]\n```\n```json\n[2]\n```":             "two fenced blocks|follows after its end",
		"```json\nx{\"a\":1}\n```":                         "the word x is glued",
		"```json\n{\"a\":1}x\n```":                         "glued to the end of the object: x",
		`ls{"a":1}`:                                        "the word ls is glued",
		`do not{"a":1}`:                                    "the word not is glued",
		`{"a":1}false`:                                     "glued to the end of the object: false",
		`{"a":1}é x`:                                       "glued to the end of the object: é",
		`{"a":1}_`:                                         "glued to the end of the object: _",
		`5{"a":1}`:                                         "the word 5 is glued",
		`{"a":1}{"a":1}x`:                                  "glued to the end of the object: x",
	} {
		fixed, _, err := jsonrepair.Repair([]byte(text))
		if err == nil {
			t.Errorf("%s: became %s, want it refused", text, fixed)
			continue
		}
		ok := false
		for _, w := range strings.Split(want, "|") {
			ok = ok || strings.Contains(err.Error(), w)
		}
		if !ok || errors.Is(err, jsonrepair.ErrCut) {
			t.Errorf("%.100s: error %q, want %q", text, err, want)
		}
	}
}

// The beginning of any text is refused as cut off, however the text was written.
func TestNeverMendsWhatIsCut(t *testing.T) {
	for _, whole := range []string{
		`{"path":"a.txt","lines":[1,-2.5e3,{"x":null}],"on":true,"text":"a\n\u00e9\"b"}`,
		`{path:'a.txt', "lines": [1, 2,], "force": True, /* why */ "s": "a" + "b", }`,
		"Sure, here:\n```json\n{\"a\": {\"b\": “x”}}\n```",
	} {
		last := strings.LastIndex(whole, "}")
		for n := strings.Index(whole, "{") + 1; n <= last; n++ {
			fixed, _, err := jsonrepair.Repair([]byte(whole[:n]))
			if err == nil {
				t.Errorf("%s: became %s, want it refused", whole[:n], fixed)
			}
		}
		if _, _, err := jsonrepair.Repair([]byte(whole[:last])); !errors.Is(err, jsonrepair.ErrCut) {
			t.Errorf("%s: error %v, want ErrCut", whole[:last], err)
		}
		if _, _, err := jsonrepair.Repair([]byte(whole)); err != nil {
			t.Errorf("%s: %v", whole, err)
		}
	}
}

func TestManyRepairsAreNotAllNamed(t *testing.T) {
	text := "{"
	for i := range 100 {
		text += fmt.Sprintf("name%d: 1,", i)
	}
	if _, repairs, err := jsonrepair.Repair([]byte(text + "}")); err != nil || len(repairs) != 17 || repairs[16] != "repaired more of the kind" {
		t.Errorf("%d repairs, error %v: %q", len(repairs), err, repairs)
	}
}

func FuzzRepair(f *testing.F) {
	for _, s := range []string{`{"a":1,}`, `{'a': 'it's'}`, "x ```{a:1}``` y {a:1}", `{\"a\":1}`, `[1 2 "a" "b" + 'c']`, `{"a":"\d`, "“‘`", `{"a":1}}{"a":1}`, `/*`, `f({})`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in := string(text)
		fixed, repairs, err := jsonrepair.Repair(text)
		switch {
		case string(text) != in:
			t.Errorf("%q was changed in place", in)
		case err != nil:
			if fixed != nil || repairs != nil || err.Error() == "" {
				t.Errorf("%q: %q, %v with the error %v", in, fixed, repairs, err)
			}
		case !json.Valid(fixed):
			t.Errorf("%q became %q, which is not valid", in, fixed)
		case json.Valid(text) != (len(repairs) == 0):
			t.Errorf("%q: repairs %q", in, repairs)
		}
	})
}
