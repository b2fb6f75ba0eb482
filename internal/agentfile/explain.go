package agentfile

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// Explanation shows what an agent is when all is said.
type Explanation struct {
	Agent  []byte // as YAML of the native form: every key that is set, in their order
	Method string // of the first request; "" for a model that no request goes to
	URL    string

	// Body is the body that the provider would receive. A model without a provider has the request
	// itself, as JSON.
	Body []byte

	// Tokens: the context window, what a request may have of it, and about what instructions and
	// tools take. A Window of 0 means that it is unknown.
	Window, Room, Taken int
}

// Explain returns the agent and the first request of a run with task. Nothing is sent, and no tool
// runs. Secret values of variables stand as ${NAME}. Getenv, Connect and Notice of o are used; o
// may be nil. Errors are *Finding or Findings.
func (a *Agent) Explain(ctx context.Context, o *Options, task string) (*Explanation, error) {
	w := new(wiretap)
	dry := o.dry()
	dry.HTTP = w
	built, err := a.Build(ctx, dry)
	if err != nil {
		return nil, err
	}
	defer built.Close()
	var first []*llm.Request
	for range built.Agent.Stream(ctx, llm.User(task)) {
		if built.script != nil {
			first = built.script.Requests()
		}
		if w.body != nil || first != nil {
			break
		}
	}
	out := &Explanation{Agent: a.hide(a.YAML()), Method: w.method, URL: string(a.hide([]byte(w.url))),
		Body: a.hide(w.body), Window: built.Window}
	out.Room, out.Taken = built.Room()
	if w.body == nil && first != nil {
		b, err := json.Marshal(first[0])
		if err != nil {
			return nil, err
		}
		out.Body = a.hide(b)
	}
	return out, nil
}

// wiretap records the first request and answers with an error that is not retried.
type wiretap struct {
	method, url string
	body        []byte
}

// RoundTrip records the request.
func (w *wiretap) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.body == nil {
		w.method, w.url, w.body = req.Method, req.URL.String(), []byte{}
		if req.Body != nil {
			b, err := io.ReadAll(req.Body)
			if err != nil {
				return nil, err
			}
			w.body = b
		}
	}
	if req.Body != nil {
		req.Body.Close()
	}
	return &http.Response{StatusCode: http.StatusBadRequest, Status: "400 Bad Request", Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"error":{"message":"nothing is sent here"}}`)), Request: req}, nil
}

// hide replaces secret values by ${NAME}.
func (a *Agent) hide(b []byte) []byte {
	for _, s := range a.secrets {
		if s.value != "" {
			b = bytes.ReplaceAll(b, []byte(s.value), []byte("${"+s.name+"}"))
		}
	}
	return b
}

func (a *Agent) hidden() []string {
	var values []string
	for _, s := range a.secrets {
		values = append(values, s.value)
	}
	return values
}

// YAML returns a in the native form, with every key that is set. Parse returns the same agent
// again, with the values of variables in place of their names.
func (a *Agent) YAML() []byte {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(written(reflect.ValueOf(a).Elem())); err != nil {
		panic(err) // of nodes that are made here
	}
	return out.Bytes()
}

// written returns the node that v is read from. Nil means that v is not set.
func written(v reflect.Value) *yaml.Node {
	if !v.IsValid() || v.IsZero() {
		return nil
	}
	switch x := v.Interface().(type) {
	case *yaml.Node:
		return x
	case Models:
		if len(x) == 1 {
			return written(v.Index(0))
		}
	case Model:
		if x == (Model{Name: x.Name}) {
			return text(x.Name)
		}
	case Worker:
		if x.Name != "" && x.File == "" && x.Description == "" && x.Tools == nil {
			return text(x.Name)
		}
	case Tool:
		if x.Set != "" {
			return text(x.Set)
		}
	case Choice:
		if len(x) == 1 {
			return text(x[0])
		}
	case *Output:
		if x.File != "" {
			return text(x.File)
		}
		return jsonNode(x.Schema)
	case *History:
		if x.Word != "" {
			return text(x.Word)
		}
	case outside.JSON:
		return jsonNode(json.RawMessage(x))
	case encoding.TextMarshaler:
		if b, err := x.MarshalText(); err == nil {
			return text(string(b))
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if n := written(v.Elem()); n != nil {
			return n
		}
		if v.Elem().Kind() == reflect.Struct {
			return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		}
		return scalarNode(v.Elem()) // a 0 that was said
	case reflect.Interface:
		return written(v.Elem())
	case reflect.Struct:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, f := range fieldsOf(v.Type()) {
			one := written(v.FieldByIndex(f.Index))
			// headers contain variables
			if keyOf(f) == "headers" && one != nil && v.Type() != serverType {
				for i := 1; i < len(one.Content); i += 2 {
					one.Content[i] = keyNode(strings.ReplaceAll(one.Content[i].Value, "$${", "${"))
				}
			}
			if one != nil {
				n.Content = append(n.Content, keyNode(keyOf(f)), one)
			}
		}
		return n
	case reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			if one := written(v.Index(i)); one != nil {
				n.Content = append(n.Content, one)
			}
		}
		return n
	case reflect.Map:
		n := &yaml.Node{Kind: yaml.MappingNode}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			one := written(v.MapIndex(k))
			if one == nil {
				one = scalarNode(v.MapIndex(k))
			}
			n.Content = append(n.Content, keyNode(k.String()), one)
		}
		return n
	}
	return scalarNode(v)
}

func scalarNode(v reflect.Value) *yaml.Node {
	n := new(yaml.Node)
	if n.Encode(v.Interface()) != nil {
		return nil
	}
	if v.Kind() == reflect.String {
		return text(v.String())
	}
	return n
}

// keyNode is a key, in which no variables stand.
func keyNode(s string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(s)
	return n
}

// text is a text, with what would be taken for a variable escaped.
func text(s string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(strings.ReplaceAll(s, "${", "$${"))
	return n
}

// jsonNode writes JSON as YAML, which it is.
func jsonNode(b json.RawMessage) *yaml.Node {
	var doc yaml.Node
	if yaml.Unmarshal(b, &doc) != nil || len(doc.Content) == 0 {
		return text(string(b))
	}
	plainStyle(doc.Content[0])
	return doc.Content[0]
}

// plainStyle takes the quotes of JSON away where YAML needs none.
func plainStyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		*n = *text(n.Value)
	}
	for _, c := range n.Content {
		plainStyle(c)
	}
}
