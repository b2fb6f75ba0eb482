package wiretest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// Spelling normalizes the bodies of a wire, so that two bodies with the same meaning are equal.
type Spelling struct {
	// Known are the members of a body that the neutral form has. All others are passed as provider
	// options, as a user would set them.
	Known []string

	// Options adds the parts of a known member that only provider options can express (hosted
	// tools, the summary of reasoning). nil means none.
	Options func(body map[string]any, options map[string]any)

	// Spell rewrites a body to one of its equivalent spellings. It may change its argument.
	Spell func(body map[string]any)

	// Verbatim are the names of members in which no value is a default and nulls count: schemas and
	// arguments.
	Verbatim []string

	// Dropped gives the reason why the adapter does not write a field again, by its path. A path
	// that ends in "*" matches all paths with this beginning.
	Dropped map[string]string

	// Refused gives the reason why the adapter rejects some requests, by a part of the error
	// message.
	Refused map[string]string

	// Otherwise gives the reason why some requests have another meaning when they are read again,
	// by a part of the difference.
	Otherwise map[string]string
}

// tolerated is the number of requests that may lose a field without a reason.
const tolerated = 5

// Requests proves that every recorded request keeps its meaning when pawltest's reader reads it and
// the adapter encodes it: read again, it is the same conversation, and its body has every field of
// the recorded body. Each dropped or changed field is listed by its path with the number of
// requests. More than five requests need a reason.
func Requests(t *testing.T, w *Wire, s *Spelling) {
	all, out := w.exchanges(t)
	lost, example, refused, again, total := map[string]int{}, map[string]string{}, map[string]int{}, 0, 0
	for _, e := range all {
		if e.Request == nil || len(e.Request.Body) == 0 || string(e.Request.Body) == "null" {
			continue
		}
		total++
		paths, why, err := w.reencode(s, e)
		switch {
		case err != nil:
			reason := pieceOf(s.Refused, err.Error())
			if reason == "" {
				t.Errorf("%s: %v", e.Name(), err)
			}
			refused[reason]++
			continue
		case why != "" && pieceOf(s.Otherwise, why) != "":
			t.Logf("%s: otherwise, since %s: %s", e.Name(), pieceOf(s.Otherwise, why), why)
		case why != "":
			t.Errorf("%s: encoded again it means something else: %s", e.Name(), why)
		}
		again++
		for _, p := range paths {
			lost[p]++
			if example[p] == "" {
				example[p] = e.Name()
			}
		}
	}
	t.Logf("%d requests (excluded: %v), %d encoded again, refused: %v", total, out, again, refused)
	for _, p := range slices.Sorted(maps.Keys(lost)) {
		reason := reasonOf(s.Dropped, p)
		t.Logf("dropped or changed: %-60s %4d  %s", p, lost[p], reason)
		if lost[p] > tolerated && reason == "" {
			t.Errorf("%s is dropped from %d requests, and nobody says why; one is %s", p, lost[p], example[p])
		}
	}
	for p := range s.Dropped {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(lost)),
			func(path string) bool { return reasonOf(map[string]string{p: "x"}, path) != "" }) {
			t.Errorf("%s is dropped nowhere: take its reason off the list", p)
		}
	}
	if total < 100 {
		t.Errorf("only %d requests were found", total)
	}
}

// pieceOf returns the reason whose key is a part of s.
func pieceOf(reasons map[string]string, s string) string {
	for piece, r := range reasons {
		if strings.Contains(s, piece) {
			return r
		}
	}
	return ""
}

func reasonOf(reasons map[string]string, path string) string {
	if r := reasons[path]; r != "" {
		return r
	}
	for p, r := range reasons {
		if begin, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(path, begin) {
			return r
		}
	}
	return ""
}

// reencode reads a recorded request and lets the adapter encode it. It returns the paths of the
// lost fields and the difference of the meaning.
func (w *Wire) reencode(s *Spelling, e *pawltest.Exchange) (lost []string, why string, err error) {
	recorded := e.Request.Body
	req, err := pawltest.ReadRequest(w.API, recorded)
	if err != nil {
		return nil, "", fmt.Errorf("the independent reader cannot read it: %w", err)
	}
	if req.Model == "" {
		req.Model = modelOf(e)
	}
	var body map[string]any
	if err := unmarshal(recorded, &body); err != nil {
		return nil, "", err
	}
	options := map[string]any{}
	for name, v := range body {
		if !slices.Contains(s.Known, name) {
			options[name] = v
		}
	}
	if s.Options != nil {
		s.Options(body, options)
	}
	if len(options) > 0 {
		b, _ := json.Marshal(options)
		req.Settings.Options = map[string]json.RawMessage{w.Provider: b}
	}
	encoded, err := w.Encode(req)
	if err != nil {
		return nil, "", err
	}
	back, err := pawltest.ReadRequest(w.API, encoded)
	if err != nil {
		return nil, "", fmt.Errorf("the independent reader cannot read what was encoded: %w: %s", err, encoded)
	}
	if back.Model == "" {
		back.Model = req.Model // it is in the address
	}
	if got, want := Meaning(back), Meaning(req); got != want {
		why = difference(got, want)
	}
	return s.lost(recorded, encoded), why, nil
}

// modelOf returns the model of a request that names it in its address.
func modelOf(e *pawltest.Exchange) string {
	if _, rest, ok := strings.Cut(e.Path, "models/"); ok {
		if i := strings.LastIndexAny(rest, ":/"); i > 0 {
			rest = rest[:i]
		}
		return rest
	}
	if _, rest, ok := strings.Cut(e.Path, "deployments/"); ok { // of Azure
		rest, _, _ = strings.Cut(rest, "/")
		return rest
	}
	return e.Info.Model
}

func unmarshal(b []byte, v any) error {
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	return d.Decode(v)
}

// lost returns the paths of the recorded body's fields that the encoded body lacks, has with
// another value, or has less often. Each path appears once.
func (s *Spelling) lost(recorded, encoded []byte) []string {
	have := map[string]int{}
	for _, f := range s.fields(encoded) {
		have[f[0]+" = "+f[1]]++
	}
	missing := map[string]bool{}
	for _, f := range s.fields(recorded) {
		if key := f[0] + " = " + f[1]; have[key] == 0 {
			missing[f[0]] = true
		} else {
			have[key]--
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// fields returns the leaves of a normalized body as path and value. Elements of lists have one
// path.
func (s *Spelling) fields(raw []byte) (all [][2]string) {
	var body map[string]any
	if unmarshal(raw, &body) != nil {
		return [][2]string{{"", string(raw)}}
	}
	s.Spell(body)
	var walk func(path string, v any, verbatim bool)
	walk = func(path string, v any, verbatim bool) {
		switch v := v.(type) {
		case map[string]any:
			for name, v := range v {
				walk(path+"."+name, v, verbatim || slices.Contains(s.Verbatim, name))
			}
			if verbatim && len(v) == 0 {
				all = append(all, [2]string{path, "{}"})
			}
		case []any:
			for _, v := range v {
				walk(path+"[]", v, verbatim)
			}
			if verbatim && len(v) == 0 {
				all = append(all, [2]string{path, "[]"})
			}
		case nil:
			if verbatim {
				all = append(all, [2]string{path, "null"})
			}
		case json.Number:
			f, _ := v.Float64()
			all = append(all, [2]string{path, fmt.Sprint(f)})
		default:
			b, _ := json.Marshal(v)
			all = append(all, [2]string{path, string(b)})
		}
	}
	for name, v := range body {
		walk(name, v, slices.Contains(s.Verbatim, name))
	}
	return all
}

// Meaning returns the content of a request, one line for each item, without details that a wire may
// change: ids are numbers within their reply, consecutive messages of one role are joined, and so
// are the texts of a message.
func Meaning(r *llm.Request) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	speaker, text := "", ""
	flush := func() {
		if strings.TrimSpace(text) != "" {
			add("%s: %q", speaker, strings.TrimSpace(text))
		}
		text = ""
	}
	var calls []string
	for _, m := range r.Messages {
		role := string(m.Role)
		if role == "developer" {
			role = "system"
		}
		if role == "tool" {
			flush()
			speaker = role
			for _, line := range results(m, calls) {
				add("%s", line)
			}
			continue
		}
		if !slices.ContainsFunc(m.Parts, speaks) {
			continue // a message without content
		}
		if role != speaker {
			flush()
			calls = nil
		}
		speaker = role
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				text += p.Text
			case llm.Media:
				flush()
				add("%s: %s", role, mediaLine(p))
			case llm.ToolCall:
				flush()
				add("%s: call %s(%s)", role, p.Name, Canonical(p.Args))
				calls = append(calls, p.ID)
			case llm.Reasoning:
				if p.Opaque != nil {
					flush()
					add("%s: kept %s", role, Canonical(p.Opaque.Data))
				}
			}
		}
	}
	flush()
	for _, t := range r.Tools {
		add("tool %s: %s", t.Name, t.Description)
	}
	if len(r.Tools) > 0 {
		add("choice %v %v", r.Choice.Mode, r.Choice.Names)
	}
	s := r.Settings
	if s.Temperature != nil {
		add("temperature %v", *s.Temperature)
	}
	if s.TopP != nil {
		add("top_p %v", *s.TopP)
	}
	if s.Parallel != nil && !*s.Parallel {
		add("one call at a time")
	}
	lines = append(lines, fmt.Sprintf("stop %q, whole %t, model %s", s.StopSequences, r.Whole, r.Model))
	return strings.Join(lines, "\n")
}

// speaks reports whether a part has content.
func speaks(p llm.Part) bool {
	t, ok := p.(llm.Text)
	return !ok || t.Text != ""
}

// results returns the lines of a results message in the order of the calls that they answer.
func results(m llm.Message, calls []string) []string {
	type line struct {
		of   int
		text string
	}
	var all []line
	for _, p := range m.Parts {
		r, ok := p.(llm.ToolResult)
		if !ok {
			continue
		}
		l := line{of: slices.Index(calls, r.CallID)}
		l.text = fmt.Sprintf("result of call %d: %q", l.of, strings.TrimSpace(r.Text()))
		for _, p := range r.Parts {
			if md, ok := p.(llm.Media); ok {
				l.text += ", " + mediaLine(md)
			}
		}
		all = append(all, l)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].of < all[j].of })
	out := make([]string, len(all))
	for i, l := range all {
		out[i] = l.text
	}
	return out
}

func mediaLine(m llm.Media) string {
	if m.URL != "" {
		return "media at " + m.URL
	}
	return fmt.Sprintf("media %s of %d bytes, %x", m.MIME, len(m.Data), m.Data[:min(8, len(m.Data))])
}

// difference returns the first line in which two meanings differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "nothing", "nothing"
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("line %d: got %.300s, want %.300s", i, a, b)
		}
	}
	return ""
}

// RequestsControl is the negative control of Requests, and its fixture if there are no recordings.
// A request is encoded again without a loss, and an encoder that drops the matches of the
// expression is detected.
func RequestsControl(t *testing.T, w *Wire, s *Spelling, request, drop string) {
	t.Helper()
	e := new(pawltest.Exchange)
	if err := json.Unmarshal([]byte(`{"path":"/models/m:x","request":{"body":`+request+`}}`), e); err != nil {
		t.Fatal(err)
	}
	if lost, why, err := w.reencode(s, e); len(lost) > 0 || why != "" || err != nil {
		t.Errorf("%s: lost %q, means otherwise: %s, error %v", w.API, lost, why, err)
	}
	spoilt, cut := *w, regexp.MustCompile(drop)
	spoilt.Encode = func(req *llm.Request) ([]byte, error) {
		b, err := w.Encode(req)
		return cut.ReplaceAll(b, nil), err
	}
	if lost, why, err := spoilt.reencode(s, e); err != nil || len(lost) == 0 && why == "" {
		t.Errorf("%s: without %s nothing is missed (error %v)", w.API, drop, err)
	}
}
