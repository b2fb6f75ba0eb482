package origin

// results.go: reads the results of calls into the index of a conversation.

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// unread is a result that nothing has been looked for in yet.
type unread struct {
	llm.ToolResult
	args  json.RawMessage // of its call
	of    *Conduct
	words int // how many texts of the user stood before it
}

// admit takes the result of a call. It is read when a value is looked for that the user did not
// say.
func (ix *Index) admit(r llm.ToolResult, tool func(string) *Conduct) {
	u := unread{ToolResult: r, of: &Conduct{name: "a tool"}, words: len(ix.words)}
	if c, ok := ix.calls[r.CallID]; ok {
		u.of = tool(c.Name)
		u.args = c.Args
	}
	if u.of.trusted && (r.IsError || u.of.compose) { // the text of an error has words of the model
		c := *u.of
		c.trusted = false
		u.of = &c
	}
	size := len(r.Data)
	for _, p := range r.Parts {
		if t, ok := p.(llm.Text); ok {
			size += len(t.Text)
		}
	}
	ix.tainted = ix.tainted || !u.of.trusted && size > 16 // shorter ones ask for nothing
	ix.full = ix.full || ix.bytes.Add(int64(size)) > maxText
	if !ix.full {
		ix.unread = append(ix.unread, u)
	}
}

// private reports whether a field of the result may be private.
func (u *unread) private() bool {
	return u.of.private || slices.ContainsFunc(u.Parts, func(p llm.Part) bool {
		t, _ := p.(llm.Text)
		for w := range privateWords {
			if strings.Contains(t.Text, w[1:]) { // the first letter may be a capital
				return true
			}
		}
		return false
	})
}

// load reads the results that were not read yet.
func (ix *Index) load() {
	for _, u := range ix.unread {
		ix.result(u)
	}
	ix.unread = nil
	ix.scanned = 0
}

// result reads a result.
func (ix *Index) result(r unread) {
	o := &origin{of: r.of, seq: len(ix.origins)}
	ix.origins = append(ix.origins, o)
	ix.asked(o, r.args, ix.words[:r.words])
	data := r.Data
	text := r.Text()
	if t := strings.TrimSpace(text); data == nil && t != "" && (t[0] == '{' || t[0] == '[') {
		data = []byte(t)
	}
	if data == nil || r.IsError || o.of.compose || o.document && !o.of.trusted || !json.Valid(data) {
		ix.texts = append(ix.texts, passage{origin: o, text: plainText(text)})
		if !o.of.act && !r.IsError && !o.of.compose && !o.document {
			ix.lines(o, text)
		}
		return
	}
	for _, p := range r.Parts {
		t, _ := p.(llm.Text)
		cur := jsonscan.New([]byte(t.Text))
		if kind := cur.Kind(); kind != jsonscan.Object && kind != jsonscan.Array {
			ix.texts = append(ix.texts, passage{origin: o, text: plainText(t.Text), shadow: true})
			continue
		}
		cur.Skip() // the data, and what stands after them
		if rest := plainText(t.Text[min(cur.Offset(), len(t.Text)):]); rest != "" {
			ix.texts = append(ix.texts, passage{origin: o, text: rest})
		}
	}
	cur := jsonscan.New(data)
	ix.value(&cur, o, "", &record{}, 0)
}

// asked reads the arguments of the call of a result. words are the user's before it.
func (ix *Index) asked(o *origin, args json.RawMessage, words []string) {
	found := false
	o.keyed = true
	w := walker{give: func(name, v string, isString bool) {
		v = plainText(v)
		said := ix.saidIn(words, v)
		if !said {
			o.args = append(o.args, v, columns.Replace(v))
		}
		if !isString || v == "" || timeWords[noun(name)] {
			return
		}
		found, o.keyed = true, o.keyed && said
		if n := noun(name); !o.of.act && (placeWords[n] || addressWords[n]) {
			o.document, o.named, o.web = true, o.named || said, o.web || addressWords[n]
		}
	}, key: func(name string) { o.args = append(o.args, plainText(name)) }}
	cur := jsonscan.New(args)
	w.walk(&cur, "")
	o.vast = w.n > maxArguments
	o.keyed = o.keyed && found
}

// columns separates numbers that a comma or a colon joins.
var columns = strings.NewReplacer(",", " , ", ":", " : ")

// walker finds the first maxArguments values in arguments.
type walker struct {
	// gets each string and number with the name of the member around it, and each name that is an
	// address
	give func(name, value string, isString bool)
	key  func(name string) // gets the names of members; nil means that they are not needed
	n    int
}

func (w *walker) found(name, value string, isString bool) {
	w.n++
	if w.n <= maxArguments {
		w.give(name, value, isString)
	}
}

func (w *walker) walk(cur *jsonscan.Cursor, name string) {
	switch cur.Kind() {
	case jsonscan.Object:
		cur.Object()
		for key, ok := cur.Key(); ok; key, ok = cur.Key() {
			k := string(key)
			if w.key != nil && w.n <= maxArguments {
				w.n++
				w.key(k)
			}
			if name != "" && addressKind(plainText(k)) != "" {
				w.found(name, k, true)
			}
			w.walk(cur, k)
		}
	case jsonscan.Array:
		for cur.Array(); cur.More(); {
			w.walk(cur, name)
		}
	case jsonscan.String:
		w.found(name, cur.String(), true)
	case jsonscan.Number:
		w.found(name, string(cur.Raw()), false)
	default:
		cur.Skip()
	}
}

// lines reads the items of a plain text: short lines, without a label at their start.
func (ix *Index) lines(o *origin, text string) {
	for line := range strings.Lines(text) {
		if len(line) > 256 {
			continue
		}
		if _, item, ok := strings.Cut(line, ": "); ok {
			line = item
		}
		if v := plainText(line); v != "" && strings.Count(v, " ") < 6 {
			ix.add(v, spot{origin: o})
		}
	}
}

// value reads a value of a result: the field it stands in, and the record around it.
func (ix *Index) value(cur *jsonscan.Cursor, o *origin, field string, rec *record, depth int) {
	switch cur.Kind() {
	case jsonscan.Object:
		inner := &record{up: rec}
		for key := range cur.Members() {
			k := string(key)
			if addressKind(plainText(k)) != "" {
				ix.scalar(o, field, k, rec, depth)
			}
			ix.value(cur, o, k, inner, depth+1)
		}
	case jsonscan.Array:
		for cur.Array(); cur.More(); {
			alone := rec
			if cur.Kind() == jsonscan.Object {
				alone = nil
			}
			ix.value(cur, o, field, alone, depth)
		}
	case jsonscan.String:
		ix.scalar(o, field, cur.String(), rec, depth)
	case jsonscan.Number:
		ix.scalar(o, field, string(cur.Raw()), rec, depth)
	default:
		cur.Skip()
	}
}

// scalar reads a string or a number of a result.
func (ix *Index) scalar(o *origin, field, value string, rec *record, depth int) {
	v, n := plainText(value), noun(field)
	if v == "" {
		return
	}
	if len(v) > 5 && (o.of.private || privateWords[n]) {
		ix.private = append(ix.private, v)
	}
	if len(v) > 256 || strings.Count(v, " ") >= 6 || proseWords[n] || n == "subject" || n == "title" && strings.Count(v, " ") >= 3 {
		ix.texts = append(ix.texts, passage{origin: o, text: v})
		if len(v) > 256 || strings.Count(v, " ") >= 6 || proseWords[n] {
			return
		}
	}
	if rec == nil {
		rec = &record{}
	}
	if len(v) > 2 && len(rec.texts) < maxSame && !stateWords[n] && (len(v) > 3 || strings.Trim(v, "0123456789") == v) {
		rec.texts = append(rec.texts, v)
	}
	if !o.of.act {
		ix.add(v, spot{origin: o, noun: n, record: rec})
	} else if depth == 1 && (nounRole(n) == roleObject || addressWords[n]) && ix.own[v] == nil {
		ix.own[v] = o
	}
}

func (ix *Index) add(v string, s spot) {
	if len(ix.all) >= maxSpots {
		ix.full = true
		return
	}
	before, ok := ix.last[v]
	s.before = -1
	if ok {
		s.before, s.count = before, ix.all[before].count+1
		if s.count >= maxSame {
			return
		}
	}
	ix.all = append(ix.all, s)
	ix.last[v] = len(ix.all) - 1
}
