package origin

// results.go: reads the results of calls into the index of a conversation.

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
)

// Bounds of the values of results, in bytes and in spaces between words.
const (
	longValue = 256 // a longer value is running text
	manyWords = 6
)

// unread is a result that no value was looked for in yet.
type unread struct {
	llm.ToolResult
	args  json.RawMessage // of its call
	tool  *Conduct
	words int // how many texts of the user stood before it
}

// admit adds the result of a call. It is read when a value is looked for that the user did not say.
func (ix *Index) admit(r llm.ToolResult, tool func(string) *Conduct) {
	u := unread{ToolResult: r, tool: &Conduct{name: "a tool"}, words: len(ix.words)}
	if c, ok := ix.calls[r.CallID]; ok {
		u.tool = tool(c.Name)
		u.args = c.Args
	}

	// A page of a result that was too large for the model is as that result.
	if of := ix.pageOf(u.args); of != nil {
		u.tool = of
	}
	if r.LeftOut > 0 {
		ix.cut[string(r.Key)] = u.tool
	}

	// The label of a result says who wrote it, unless the operator has labelled the tool. The text
	// of an error has words of the model, and a composing tool has words of other tools.
	by, _ := llm.Results(r).Label()
	trusted := u.tool.trusted || by.By >= llm.Trusted
	if r.IsError || u.tool.compose {
		trusted = false
	}
	// What a program, a plan or an agent made of private results is private.
	private := u.tool.private || sourceIn(by, tool, (*Conduct).isPrivate) != ""
	if trusted != u.tool.trusted || private != u.tool.private {
		c := *u.tool
		c.trusted = trusted
		c.private = private
		u.tool = &c
	}
	if u.tool.sealed {
		ix.sealed = cmp.Or(ix.sealed, u.tool.name)
	}
	ix.sealed = cmp.Or(ix.sealed, sourceIn(by, tool, (*Conduct).isSealed))

	size := len(r.Data)
	for _, p := range r.Parts {
		if t, ok := p.(llm.Text); ok {
			size += len(t.Text)
		}
	}
	composed := u.tool.compose && by.By >= llm.Trusted // of trusted parts only
	if !trusted && !composed {
		ix.taintByResult(r)
	}

	if !ix.full && ix.bytes.Add(int64(size)) > maxText {
		ix.full = true
	}
	if ix.full {
		ix.unheard = ix.unheard || u.tool.private
		return
	}
	ix.unread = append(ix.unread, u)
}

// pageOf returns the conduct of the tool whose result a call with args reads a page of. nil means
// that the call reads no result.
func (ix *Index) pageOf(args json.RawMessage) *Conduct {
	if len(ix.cut) == 0 {
		return nil
	}
	var page struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(args, &page) != nil {
		return nil
	}
	return ix.cut[page.ID]
}

// sourceIn returns the first tool among the sources of a label for which is holds. Empty means
// none.
func sourceIn(l llm.Label, tool func(string) *Conduct, is func(*Conduct) bool) string {
	for _, s := range l.From {
		if s.Kind == "tool" && is(tool(s.Name)) {
			return s.Name
		}
	}
	return ""
}

// taintByResult notes a result that others wrote.
func (ix *Index) taintByResult(r llm.ToolResult) {
	if slices.ContainsFunc(r.Parts, func(p llm.Part) bool { _, is := p.(llm.Media); return is }) {
		ix.tainted = true
	}
	text := r.Text()
	if len(r.Data) > len(text) { // the text repeats the data, as a rule
		text = string(r.Data)
	}
	ix.taint(text)
}

// mayBePrivate reports whether a field of the result may be private.
func (u *unread) mayBePrivate() bool {
	return u.tool.private || slices.ContainsFunc(u.Parts, func(p llm.Part) bool {
		t, _ := p.(llm.Text)
		for w := range privateWords {
			if strings.Contains(t.Text, w[1:]) { // the first letter may be a capital
				return true
			}
		}
		return false
	})
}

// loadPrivate reads all results if one of them may have a private value.
func (ix *Index) loadPrivate() {
	for ; ix.scanned < len(ix.unread); ix.scanned++ {
		if ix.unread[ix.scanned].mayBePrivate() {
			ix.load()
			return
		}
	}
}

// load reads the results that were not read yet.
func (ix *Index) load() {
	for _, u := range ix.unread {
		ix.readResult(u)
	}
	ix.unread = nil
	ix.scanned = 0
}

// readResult reads a result: its data as records, and its text as a passage or as lines.
func (ix *Index) readResult(r unread) {
	s := &source{tool: r.tool, call: r.CallID, seq: len(ix.sources), turn: r.words}
	ix.sources = append(ix.sources, s)
	ix.readArguments(s, r.args, ix.words[:r.words])

	ran := r.Key != "" && !r.IsError
	if ran {
		ix.addReached(s.tool, r.args, r.words)
	}

	// A label that names no readers says that a page is not public.
	label, _ := llm.Results(r.ToolResult).Label()
	public := s.web && r.Label == nil || slices.Contains(label.Readers, "*")
	s.inside = s.tool.reads && !s.tool.pure && !public

	text := r.Text()
	data := r.Data
	if s.tool.private {
		addTokens(ix.secrets, plainText(text))
		addTokens(ix.secrets, plainText(string(data)))
	}
	if data == nil {
		data = asData(text)
	}

	// Outsiders write documents, errors and what other tools returned. These are texts also
	// if they look like data.
	ofOutsiders := s.document && !s.tool.trusted
	foreign := r.IsError || s.tool.compose || ofOutsiders
	if data == nil || foreign || !json.Valid(data) {
		ix.addText(passage{source: s, raw: text, text: plainText(text)})
		if !s.tool.acts && !s.document && !foreign {
			ix.readLines(s, text)
		}
		return
	}

	for _, p := range r.Parts {
		t, _ := p.(llm.Text)
		ix.readBesides(s, t.Text)
	}
	cur := jsonscan.New(data)
	ix.readValue(&cur, s, "", &record{}, 0)
}

// asData returns a text that looks like JSON as data, otherwise nil.
func asData(text string) json.RawMessage {
	t := strings.TrimSpace(text)
	if strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		return json.RawMessage(t)
	}
	return nil
}

// readBesides reads a text of a result with data: all of it, or what stands after the data in it.
func (ix *Index) readBesides(s *source, text string) {
	cur := jsonscan.New([]byte(text))
	if kind := cur.Kind(); kind != jsonscan.Object && kind != jsonscan.Array {
		ix.addText(passage{source: s, raw: text, text: plainText(text), shadow: true})
		return
	}
	cur.Skip()
	if rest := plainText(text[min(cur.Offset(), len(text)):]); rest != "" {
		ix.addText(passage{source: s, text: rest})
	}
}

// addText adds a passage.
func (ix *Index) addText(p passage) { ix.texts = append(ix.texts, p) }

// columns separates numbers that a comma or a colon joins.
var columns = strings.NewReplacer(",", " , ", ":", " : ")

// readArguments reads the arguments of the call of a result. words are the user's before it.
func (ix *Index) readArguments(s *source, args json.RawMessage, words []string) {
	texts := 0
	unsaid := 0
	onValue := func(name, value string, isString bool) {
		v := plainText(value)
		// What the model made up for a call and reads again in its result has no origin but itself.
		said := ix.saidIn(words, v)
		if !said {
			s.args = append(s.args, v, columns.Replace(v))
		}

		n := noun(name)
		if !isString || v == "" || timeWords[n] {
			return
		}
		texts++
		if !said {
			unsaid++
		}
		if addressWords[n] || addressKind(v) == kindLink {
			s.visits = append(s.visits, v)
		}
		if !s.tool.acts {
			s.addPlace(n, v, said)
		}
	}
	onName := func(name string) { s.args = append(s.args, plainText(name)) }

	w := walker{onValue: onValue, onName: onName}
	cur := jsonscan.New(args)
	w.walk(&cur, "")
	s.truncated = w.count > maxArguments
	s.requested = texts > 0 && unsaid == 0
}

// addPlace adds the value v of an argument of a read with the noun n, which may say where the
// result comes from.
func (s *source) addPlace(n, v string, said bool) {
	if !placeWords[n] && !addressWords[n] {
		return
	}
	s.document = true
	if said {
		s.named = true
		s.places = append(s.places, v)
	}
	if addressWords[n] {
		s.web = true
	}
}

// readLines reads the items of a plain text: short lines, without a label at their start.
func (ix *Index) readLines(s *source, text string) {
	for line := range strings.Lines(text) {
		if len(line) > longValue {
			continue
		}
		if _, item, ok := strings.Cut(line, ": "); ok {
			line = item
		}
		if v := plainText(line); v != "" && strings.Count(v, " ") < manyWords {
			ix.addSpot(v, spot{source: s})
		}
	}
}

// readValue reads a value of a result: the field it stands in, and the record around it.
func (ix *Index) readValue(cur *jsonscan.Cursor, s *source, field string, rec *record, depth int) {
	switch cur.Kind() {
	case jsonscan.Object:
		inner := &record{up: rec}
		for key := range cur.Members() {
			k := string(key)
			// A key can be the data, as in {"ann@example.com": "admin"}.
			if addressKind(plainText(k)) != "" {
				ix.readScalar(s, field, k, rec, depth)
			}
			ix.readValue(cur, s, k, inner, depth+1)
		}
	case jsonscan.Array:
		for cur.Array(); cur.More(); {
			around := rec
			if cur.Kind() == jsonscan.Object {
				around = nil // the elements of a list do not name each other
			}
			ix.readValue(cur, s, field, around, depth)
		}
	case jsonscan.String:
		ix.readScalar(s, field, cur.String(), rec, depth)
	case jsonscan.Number:
		ix.readScalar(s, field, string(cur.Raw()), rec, depth)
	default:
		cur.Skip()
	}
}

// readScalar reads a string or a number of a result.
func (ix *Index) readScalar(s *source, field, value string, rec *record, depth int) {
	v := plainText(value)
	n := noun(field)
	if v == "" {
		return
	}
	if privateWords[n] {
		addTokens(ix.secrets, v)
	}
	if len(v) > 5 && (s.tool.private || privateWords[n]) {
		ix.private = append(ix.private, v)
	}

	// Outsiders write titles and subjects, too, but these also name a record.
	prose := isProse(n, v)
	if prose || isHeading(n, v) {
		ix.addText(passage{source: s, raw: value, text: v})
	}
	if prose {
		return
	}

	if rec == nil {
		rec = &record{} // the value is a name in an element of a list
	}
	if len(rec.texts) < maxNames && canName(n, v) {
		rec.texts = append(rec.texts, v)
	}
	if s.tool.acts {
		ix.addOwn(s, n, v, depth)
		return
	}
	ix.addSpot(v, spot{source: s, noun: n, record: rec})
}

// addOwn adds the value v of a field with the noun n, which the write s returned, to the ids of the
// run's own: {"id":13} names what was written, but not the ids of objects in it.
func (ix *Index) addOwn(s *source, n, v string, depth int) {
	isID := nounRole(n) == roleObject || addressWords[n]
	if depth == 1 && isID && ix.own[v] == nil {
		ix.own[v] = s
	}
}

// isProse reports whether the value v of a field with the noun n is running text.
func isProse(n, v string) bool {
	return len(v) > longValue || strings.Count(v, " ") >= manyWords || proseWords[n]
}

// isHeading reports whether the value v of a field with the noun n is the title of a text.
func isHeading(n, v string) bool {
	return n == "subject" || n == "title" && strings.Count(v, " ") >= 3
}

// canName reports whether the value v of a field with the noun n can name a record. Two letters and
// numbers of three digits stand in too many texts.
func canName(n, v string) bool {
	switch {
	case stateWords[n]:
		return false
	case len(v) == 3:
		return strings.Trim(v, "0123456789") == v
	}
	return len(v) > 3
}

// addSpot adds a place of v, unless there are too many.
func (ix *Index) addSpot(v string, s spot) {
	if len(ix.spots) >= maxSpots {
		ix.full = true
		return
	}

	s.before = -1
	if before, ok := ix.last[v]; ok {
		s.before = before
		s.count = ix.spots[before].count + 1
		if s.count >= maxSame {
			return
		}
	}
	ix.spots = append(ix.spots, s)
	ix.last[v] = len(ix.spots) - 1
}
