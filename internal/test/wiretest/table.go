package wiretest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
)

// ReplyRow is one line of a table from the wire to the neutral form: the value is inserted into a
// body at the path, and the field must have it.
type ReplyRow struct {
	Path  string
	Value any
	Field string
	Get   func(*llm.Response) any // reads the field
	Want  any                     // nil means the value
	// Base is the body. Empty means the table's body. In a stream it is the event; earlier events
	// precede a bar.
	Base string
}

// ErrorRow is one line of a table of errors: the value is inserted into an empty body at the path.
type ErrorRow struct {
	Status int
	Path   string
	Value  any
	Field  string // names the code, and Retryable if it is set
	Get    func(*llm.ProviderError) any
	Want   any // nil means the value
}

// RequestRow is one line of a table from the neutral form to the wire: the effect of Set must be at
// the path. An empty path means that the wire has no such field.
type RequestRow struct {
	Field string
	Set   func(*llm.Request)
	Path  string
	Want  any
}

// Replies runs a table. If frame is nil, the bodies are whole replies. Otherwise they are events,
// which frame joins to a stream.
func (w *Wire) Replies(t *testing.T, rows []ReplyRow, base string, frame func(before, event string) string) {
	t.Helper()
	for _, row := range rows {
		before, event := "", row.Base
		if event == "" {
			event = base
		}
		if head, tail, ok := strings.Cut(event, "|"); ok {
			before, event = head, tail
		}
		body := Printed(Put(Parse(t, event), row.Path, row.Value))
		if frame != nil {
			body = frame(before, body)
		}
		resp, err := w.Decode(200, frame != nil, []byte(body))
		if err != nil {
			t.Errorf("%s, %s: %v\n%s", w.API, row.Path, err, body)
			continue
		}
		want := row.Want
		if want == nil {
			want = row.Value
		}
		if got := row.Get(resp); Printed(got) != Printed(want) {
			t.Errorf("%s, %s: %s is %s, want %s\n%s", w.API, row.Path, row.Field, Printed(got), Printed(want), body)
		}
	}
}

// Failures runs a table of errors.
func (w *Wire) Failures(t *testing.T, rows []ErrorRow) {
	t.Helper()
	for _, row := range rows {
		_, err := w.Decode(row.Status, false, []byte(Printed(Put(nil, row.Path, row.Value))))
		e, ok := err.(*llm.ProviderError)
		if !ok {
			t.Errorf("%s, %d %s: got %v", w.API, row.Status, row.Path, err)
			continue
		}
		want := row.Want
		if want == nil {
			want = row.Value
		}
		if got := row.Get(e); got != want || e.Status != row.Status || e.Retryable != strings.Contains(row.Field, "Retryable") {
			t.Errorf("%s, %d %s: got %+v, want %s", w.API, row.Status, row.Path, e, row.Field)
		}
	}
}

// Requested runs a table of requests. Each adds to a question of the user. No request has a label.
func (w *Wire) Requested(t *testing.T, model string, rows []RequestRow) {
	t.Helper()
	w.unlabelled(t, model)
	for _, row := range rows {
		if row.Path == "" {
			continue
		}
		req := &llm.Request{Model: model, Messages: []llm.Message{llm.User("u")}, Whole: true}
		row.Set(req)
		body, err := w.Encode(req)
		if err != nil {
			t.Errorf("%s: %s: %v", w.API, row.Field, err)
			continue
		}
		if got := Take(Parse(t, string(body)), row.Path); !reflect.DeepEqual(got, row.Want) {
			t.Errorf("%s: %s: %s is %s, want %s\n%s", w.API, row.Field, row.Path, Printed(got), Printed(row.Want), body)
		}
	}
}

// unlabelled reports a body that contains labels of the messages.
func (w *Wire) unlabelled(t *testing.T, model string) {
	t.Helper()
	secret := &llm.Label{
		By:      llm.Trusted,
		From:    []llm.Source{{Kind: "file", Name: "zanzibar"}},
		Readers: []string{"party:zanzibar"},
	}
	reply := llm.Assistant(llm.Text{Text: "a"}, llm.ToolCall{ID: "1", Name: "look", Args: []byte(`{}`)})
	result := llm.ToolResult{CallID: "1", Parts: []llm.Part{llm.Text{Text: "b"}}, Data: []byte(`{"c":1}`)}
	picture := llm.Media{MIME: "image/png", Data: []byte("\x89PNG\x00\xff")}

	body, err := w.Encode(&llm.Request{Model: model, Whole: true, Messages: []llm.Message{
		llm.System("be brief").WithLabel(secret),
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "u", Label: secret}, picture}},
		reply.WithLabel(secret),
		llm.Results(result).WithLabel(secret),
		llm.User("go on").WithLabel(secret),
	}})
	if err != nil {
		t.Fatalf("%s: %v", w.API, err)
	}
	for _, word := range []string{`"label"`, "zanzibar", `"trusted"`} {
		if strings.Contains(string(body), word) {
			t.Errorf("%s: the request contains %s: %s", w.API, word, body)
		}
	}
}

// ReplyTable returns rows for a page.
func ReplyTable(b *strings.Builder, title string, rows []ReplyRow) {
	fmt.Fprintf(b, "\n## %s\n\n| raw | neutral |\n|---|---|\n", title)
	for _, r := range rows {
		path := "`" + r.Path + "`"
		_, event, _ := strings.Cut(r.Base, "|")
		if after, ok := strings.CutPrefix(event, `{"type":"`); ok { // the event's name
			name, _, _ := strings.Cut(after, `"`)
			path = "`" + name + "`: " + path
		}
		if v, ok := r.Value.(string); ok && (strings.HasPrefix(r.Field, "Finish")) {
			path += " " + v
		}
		if v, ok := r.Value.(map[string]any); ok && v["type"] != nil {
			path += fmt.Sprintf(" of type %s", v["type"])
		}
		fmt.Fprintf(b, "| %s | %s |\n", path, r.Field)
	}
}

// ErrorTable returns rows for a page.
func ErrorTable(b *strings.Builder, title string, rows []ErrorRow) {
	fmt.Fprintf(b, "\n## %s\n\n| status | raw | in `llm.ProviderError` |\n|---|---|---|\n", title)
	for _, r := range rows {
		path := "`" + r.Path + "`"
		if strings.HasPrefix(r.Field, "Code") {
			path += fmt.Sprint(" ", r.Value)
		}
		fmt.Fprintf(b, "| %d | %s | %s |\n", r.Status, path, r.Field)
	}
}

// RequestTable returns rows for a page. Each wire is a column.
func RequestTable(b *strings.Builder, names []string, tables ...[]RequestRow) {
	fmt.Fprintf(b, "\n## Requests\n\n| neutral | %s |\n|---%s|\n", strings.Join(names, " | "), strings.Repeat("|---", len(names)))
	for i, r := range tables[0] {
		b.WriteString("| " + r.Field)
		for _, rows := range tables {
			if path := rows[i].Path; path != "" {
				b.WriteString(" | `" + path + "`")
			} else {
				b.WriteString(" | –")
			}
		}
		b.WriteString(" |\n")
	}
}

// Put sets the value at a path such as choices[0].message.content, and creates missing objects and
// lists on the way.
func Put(v any, path string, value any) any {
	if path == "" {
		return value
	}
	if m := element.FindStringSubmatch(path); m != nil {
		i, _ := strconv.Atoi(m[1])
		list, _ := v.([]any)
		for len(list) <= i {
			list = append(list, nil)
		}
		list[i] = Put(list[i], m[2], value)
		return list
	}
	m := named.FindStringSubmatch(path)
	o, _ := v.(map[string]any)
	if o == nil {
		o = map[string]any{}
	}
	o[m[1]] = Put(o[m[1]], m[2], value)
	return o
}

// Take returns the value at a path. nil means that there is none.
func Take(v any, path string) any {
	for path != "" && v != nil {
		if m := element.FindStringSubmatch(path); m != nil {
			i, _ := strconv.Atoi(m[1])
			list, _ := v.([]any)
			if i >= len(list) {
				return nil
			}
			v, path = list[i], m[2]
			continue
		}
		m := named.FindStringSubmatch(path)
		o, _ := v.(map[string]any)
		v, path = o[m[1]], m[2]
	}
	return v
}

var (
	element = regexp.MustCompile(`^\[(\d+)\]\.?(.*)$`)
	named   = regexp.MustCompile(`^([^.\[]+)\.?(.*)$`)
)

// Parse decodes JSON.
func Parse(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	return v
}

// Printed encodes JSON.
func Printed(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
