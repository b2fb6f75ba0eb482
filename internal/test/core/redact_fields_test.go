package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/redact"
)

// fill puts the canary into every text below v, except the texts that only pawl writes, and returns
// their places.
func fill(v reflect.Value, at string, depth int, filled *[]string) {
	// names; IDs and names of calls have a test of their own
	own := []string{"Code", "Digest", "Provider", "MIME", "Name", "ID", "CallID"}
	switch {
	case depth > 9:
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		b, _ := json.Marshal(canary)
		v.SetBytes(b)
		*filled = append(*filled, at)
	case v.Type() == reflect.TypeFor[string]():
		if i := len(at) - 1; i >= 0 && !slices.ContainsFunc(own, func(n string) bool {
			return len(at) > len(n) && at[len(at)-len(n)-1:] == "."+n
		}) {
			v.SetString(canary)
			*filled = append(*filled, at)
		}
	case v.Type() == reflect.TypeFor[[]llm.Part]():
		res := llm.ToolResult{Parts: []llm.Part{text(canary), llm.Media{MIME: "text/plain", Data: []byte(canary)}},
			Data: json.RawMessage(jsonOf(noFatal{}, canary))}
		v.Set(reflect.ValueOf([]llm.Part{text(canary), llm.Reasoning{Text: canary}, llm.Media{URL: canary},
			call("c", "f", jsonOf(noFatal{}, canary)), res, llm.Decision{Reason: canary, By: canary, Result: &res}}))
	case v.Kind() == reflect.Pointer:
		if v.Type() == reflect.TypeFor[*llm.Request]() || v.Type() == reflect.TypeFor[*llm.ToolChoice]() {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), at, depth+1, filled)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "Offered" {
				fill(v.Field(i), at+"."+f.Name, depth+1, filled)
			}
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), at, depth+1, filled)
	case v.Type() == reflect.TypeFor[pawl.Values]():
		v.Set(reflect.ValueOf(pawl.Values{"v": json.RawMessage(jsonOf(noFatal{}, canary))}))
	}
}

// left returns the places below v that still contain the canary.
func left(v reflect.Value, at string, found *[]string) {
	switch v.Kind() {
	case reflect.String:
		if v.String() == canary {
			*found = append(*found, at)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			left(v.Elem(), at, found)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				left(v.Field(i), at+"."+f.Name, found)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if b, _ := json.Marshal(canary); string(v.Bytes()) == canary || string(v.Bytes()) == string(b) {
				*found = append(*found, at)
			}
			return
		}
		for i := range v.Len() {
			left(v.Index(i), fmt.Sprintf("%s[%d]", at, i), found)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			left(v.MapIndex(k), fmt.Sprintf("%s[%v]", at, k), found)
		}
	}
}

// Every text field of an event goes through the Redactor, also a field of a later version.
func TestEveryFieldIsRedacted(t *testing.T) {
	var e pawl.Event
	var filled, before, after []string
	fill(reflect.ValueOf(&e).Elem(), "Event", 0, &filled)
	e.Kind, e.Run = pawl.EventNotice, "run"
	if left(reflect.ValueOf(e), "Event", &before); len(before) < len(filled) || len(filled) < 20 {
		t.Fatalf("%d filled, %d found", len(filled), len(before))
	}
	var r redact.Redactor
	r.Add(canary)
	told := observe.RunnerFunc(func(context.Context, ...llm.Message) iter.Seq2[pawl.Event, error] {
		return func(yield func(pawl.Event, error) bool) { yield(e, nil) }
	})
	for e := range redact.Runner(told, &r).Stream(t.Context()) {
		left(reflect.ValueOf(e), "Event", &after)
	}
	if len(after) > 0 {
		t.Errorf("not redacted: %q", after)
	}
}
