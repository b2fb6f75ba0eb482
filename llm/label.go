package llm

// label.go: Label: who could have written a part of a conversation, and who may read it.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/pawl-go/pawl/internal/jsonform"
)

// Label says who could have written a part of a conversation, and who may read it. The zero Label
// is a stranger's, and private to the user. A part without a label has the zero Label.
//
// Labels are set where a text enters: the code that receives it knows its author. A run labels the
// text of its replies with the join of what the request contained. Labels are stored with their
// parts. No provider receives them, and no client can set them.
type Label struct {
	By Author `json:"by,omitzero"` // the least trusted of its authors
	// From says where the part was read, for questions to people: sorted, and at most 16. nil means
	// unknown.
	From []Source `json:"from,omitzero"`
	// Readers are who may read the part, besides the user of the run, sorted: "*" (everybody),
	// "server:NAME", "tenant:NAME", "party:ADDRESS", "space:NAME". nil means no other reader.
	Readers []string `json:"readers,omitzero"`
}

// Author says how far a text is the user's own. The order counts: of several authors the smallest
// holds.
type Author uint8

// The authors, from the least trusted.
const (
	Stranger Author = iota // the web, mail, servers, other agents, a client's history, unknown
	Attached               // chosen by the user, written by others: files, pasted text, images
	Trusted                // written by the user, or by people whom the user trusts
	Typed                  // the user's own words
	Operator               // instructions and configuration
)

// Source is a place that a part was read from.
type Source struct {
	Kind string `json:"kind"` // "tool", "server", "agent", "url", "file", "schedule", "memory"
	Name string `json:"name"` // of the tool, the server, the file and so on
}

// Everybody is the reader of what anybody may read: see Label.Readers.
const Everybody = "*"

// MaxSources is the number of sources that Label.From has at most.
const MaxSources = 16

// authorNames has the name of each author, in the order of the constants.
var authorNames = [...]string{"stranger", "attached", "trusted", "typed", "operator"}

// String returns stranger, attached, trusted, typed or operator.
func (a Author) String() string {
	if int(a) >= len(authorNames) {
		return fmt.Sprintf("Author(%d)", int(a))
	}
	return authorNames[a]
}

// MarshalText writes what String returns.
func (a Author) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (a *Author) UnmarshalText(b []byte) error {
	i := slices.Index(authorNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("unknown author %q; known: %s", b, strings.Join(authorNames[:], ", "))
	}
	*a = Author(i)
	return nil
}

// UnmarshalJSON reads what is stored of a label. What it cannot read is the zero Label, so that no
// mistake raises a label.
func (l *Label) UnmarshalJSON(b []byte) error {
	type plain Label
	var read plain
	if json.Unmarshal(b, &read, jsonform.Lenient) != nil {
		read = plain{}
	}
	*l = Label(read)
	return nil
}

// plainLabels are the labels without sources and readers. They are shared, so that equal parts
// compare equal with ==.
var plainLabels = [...]*Label{nil, {By: Attached}, {By: Trusted}, {By: Typed}, {By: Operator}}

// Label returns the label of a text by a, without sources, which only the user may read. It is
// shared and must not be changed. The label of Stranger is nil.
func (a Author) Label() *Label {
	if int(a) >= len(plainLabels) {
		return nil
	}
	return plainLabels[a]
}

// Shared returns a label equal to l for use in parts. nil stands for the zero Label, and a label
// without sources and readers is the one of Author.Label.
func (l Label) Shared() *Label {
	if len(l.From) == 0 && len(l.Readers) == 0 {
		return l.By.Label()
	}
	shared := l // so that only this case allocates
	return &shared
}

// labelOf returns the label that a part with l has.
func labelOf(l *Label) Label {
	if l == nil {
		return Label{}
	}
	return *l
}

// Join returns the label of a text that is made from texts with the labels l and o: the smaller
// author, all sources, and the readers of both.
func (l Label) Join(o Label) Label {
	return Label{
		By:      min(l.By, o.By),
		From:    joinSources(l.From, o.From),
		Readers: joinReaders(l.Readers, o.Readers),
	}
}

// joinSources returns the first sources of a and b, sorted. The result may be a or b.
func joinSources(a, b []Source) []Source {
	switch {
	case len(b) == 0:
		return a
	case len(a) == 0:
		return b
	}

	known := func(s Source) bool { return slices.Contains(a, s) }
	if !slices.ContainsFunc(b, func(s Source) bool { return !known(s) }) {
		return a
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Source) int {
		return cmp.Or(strings.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name))
	})
	all = slices.Compact(all)
	return all[:min(len(all), MaxSources):min(len(all), MaxSources)]
}

// joinReaders returns the readers that are in a and in b. "*" is everybody.
func joinReaders(a, b []string) []string {
	switch {
	case slices.Contains(a, Everybody):
		return b
	case slices.Contains(b, Everybody):
		return a
	}

	var both []string
	for _, r := range a {
		if slices.Contains(b, r) {
			both = append(both, r)
		}
	}
	return both
}

// Label returns the join of the labels of m's texts, media and results. The label of calls and
// reasoning is the one of the conversation before them, so that ok is false for a message without
// other parts.
func (m Message) Label() (l Label, ok bool) {
	for _, p := range m.Parts {
		part, has := partLabel(p)
		switch {
		case !has:
		case !ok:
			l = part
		default:
			l = l.Join(part)
		}
		ok = ok || has
	}
	return l, ok
}

// partLabel returns the label of p. ok is false for calls, reasoning and decisions, which have no
// label. The label of a result holds for its parts, unless one of them has a worse one.
func partLabel(p Part) (l Label, ok bool) {
	switch p := p.(type) {
	case Text:
		return labelOf(p.Label), true
	case Media:
		return labelOf(p.Label), true
	case ToolResult:
		return p.WholeLabel(), true
	}
	return Label{}, false
}

// WholeLabel returns the label of all of r: r.Label, joined with the labels that parts of r state.
func (r ToolResult) WholeLabel() Label {
	l := labelOf(r.Label)
	for _, p := range r.Parts {
		if stated, ok := ownLabel(p); ok {
			l = l.Join(stated)
		}
	}
	return l
}

// ownLabel returns the label that a part of a result states. ok is false if it states none.
func ownLabel(p Part) (l Label, ok bool) {
	switch p := p.(type) {
	case Text:
		return labelOf(p.Label), p.Label != nil
	case Media:
		return labelOf(p.Label), p.Label != nil
	}
	return Label{}, false
}

// WithLabel returns a copy of m in which each text, each media part and each result has the label
// l in place of its own. nil removes the labels: a message without labels is returned unchanged.
// The code that receives m calls it, so that the sender of m does not say who wrote it.
func (m Message) WithLabel(l *Label) Message {
	if l == nil && !slices.ContainsFunc(m.Parts, hasLabel) {
		return m
	}
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		m.Parts[i] = withLabel(p, l)
	}
	return m
}

// hasLabel reports whether p, or a part within it, states a label.
func hasLabel(p Part) bool {
	switch p := p.(type) {
	case Text:
		return p.Label != nil
	case Media:
		return p.Label != nil
	case ToolResult:
		return p.Label != nil || slices.ContainsFunc(p.Parts, hasLabel)
	case Decision:
		return p.Result != nil && hasLabel(*p.Result)
	}
	return false
}

func withLabel(p Part, l *Label) Part {
	switch p := p.(type) {
	case Text:
		p.Label = l
		return p
	case Media:
		p.Label = l
		return p
	case ToolResult:
		p.Label = l
		p.Parts = Message{Parts: p.Parts}.WithLabel(nil).Parts
		return p
	case Decision:
		if p.Result != nil {
			r := withLabel(*p.Result, l).(ToolResult)
			p.Result = &r
		}
		return p
	}
	return p
}

// WithoutLabels returns copies of msgs without labels, for comparisons of what messages say.
func WithoutLabels(msgs []Message) []Message {
	out := slices.Clone(msgs)
	for i, m := range out {
		out[i] = m.WithLabel(nil)
	}
	return out
}

// FromClient returns copies of msgs with the labels of messages that a client sends: its texts of
// the roles user, system and developer are Typed, its media is Attached, and replies and results
// are a stranger's, because a client can write any into its copy of a conversation. The labels that
// msgs have are dropped.
func FromClient(msgs ...Message) []Message {
	out := WithoutLabels(msgs)
	for n, m := range out {
		if m.Role == RoleAssistant || m.Role == RoleTool {
			continue
		}
		m.Parts = slices.Clone(m.Parts)
		for i, p := range m.Parts {
			switch p.(type) {
			case Text:
				m.Parts[i] = withLabel(p, Typed.Label())
			case Media:
				m.Parts[i] = withLabel(p, Attached.Label())
			}
		}
		out[n] = m
	}
	return out
}
