// Package find offers tools on demand. A run offers the model the tool tool_search instead of all
// tools, and then the tools that a search has found.
//
//	tools := find.OnDemand(set, nil)
//
//	request 1  tools: tool_search, and the tools of Options.Always
//	           call:  tool_search {"query":"send an invoice"}
//	request 2  tools: the same, then invoice_send and the other matches
package find

import (
	"cmp"
	"context"
	_ "embed" // the description
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// toolSearch is the name of the tool that finds deferred tools.
const toolSearch = "tool_search"

//go:embed find.md
var description string

// Options configure OnDemand. The zero value is ready to use.
type Options struct {
	Least int // with fewer tools, all are offered; 0 means 20
	// Always reports the tools that are offered from the start. Nil means none.
	Always func(tool *pawl.Tool) bool
	Most   int // the most tools that one search finds; 0 means 5, and 20 is the maximum
}

// OnDemand returns the tools of set, offered on demand: a run offers tool_search, and the tools
// that it has found. The model can also call a tool without a search if it knows its name. From
// about 20 tools on, the omitted descriptions save more than the additional request costs.
//
// The found tools are recorded in the transcript. They are offered from the next request on, after
// the tools that were offered before. An agent needs a single OnDemand: combine all sets in one
// Toolsets. o may be nil.
func OnDemand(set pawl.Toolset, o *Options) pawl.Toolset {
	s := &searchable{set: set}
	s.opts = *cmp.Or(o, new(Options))
	if s.opts.Least <= 0 {
		s.opts.Least = 20
	}
	if s.opts.Most <= 0 {
		s.opts.Most = 5
	}
	s.opts.Most = min(s.opts.Most, 20)
	return s
}

type searchable struct {
	set  pawl.Toolset
	opts Options

	mu   sync.Mutex
	from []*pawl.Tool // the last tools of the set
	// out holds the tools made from from. They stay the same as long as the set returns the same
	// tools.
	out []*pawl.Tool
}

// Tools returns the tools. The tools that are offered from the start are first.
func (s *searchable) Tools(ctx context.Context) ([]*pawl.Tool, error) {
	tools, err := s.set.Tools(ctx)
	if err != nil || len(tools) < s.opts.Least {
		return tools, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	// The same tools as before are returned as the same pointers, by which caches know them.
	if s.out != nil && slices.Equal(tools, s.from) {
		return s.out, nil
	}

	var out, later []*pawl.Tool
	for _, t := range tools {
		if s.opts.Always != nil && s.opts.Always(t) {
			out = append(out, t)
			continue
		}
		// A copy, because another agent may offer all tools of the set at once.
		c := t.Clone()
		c.Deferred = true
		later = append(later, c)
	}

	about := strings.TrimSpace(description) + fmt.Sprintf("\n\nThere are %d such tools.", len(later))
	search := pawl.Func(toolSearch, about, newToolIndex(later, s.opts.Most).find)
	search.Effect = pawl.EffectPure
	s.from = slices.Clone(tools)
	s.out = append(append(out, search), later...)
	return s.out, nil
}

// lookup is the input of tool_search.
type lookup struct {
	Query string `json:"query" jsonschema:"what the tool should do, in a few words"`
}

// found is the data that tool_search leaves for the run.
type found struct {
	Found []string `json:"found"`
}

// toolIndex finds tools by the words in their names and descriptions.
type toolIndex struct {
	tools []*pawl.Tool
	words []map[string]float64 // the weight of each word, by tool
	docs  map[string]int       // the number of tools with a word
	most  int
}

func newToolIndex(tools []*pawl.Tool, most int) *toolIndex {
	x := &toolIndex{tools: tools, docs: map[string]int{}, most: most}
	for _, t := range tools {
		words := map[string]float64{}
		for _, w := range searchWords(t.Description) {
			words[w] = 1
		}
		// A name says what a tool does; a description also mentions what it is not for.
		for _, w := range searchWords(t.Name) {
			words[w] = 4
		}

		for w := range words {
			x.docs[w]++
		}
		x.words = append(x.words, words)
	}
	return x
}

// searchWords splits text into words as people type them: in lower case, with names like readFile
// and read_file split in two, and without plural endings.
func searchWords(text string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if w := b.String(); len(w) > 1 {
			if len(w) > 3 {
				w = strings.TrimSuffix(w, "s")
			}
			out = append(out, w)
		}
		b.Reset()
	}

	small := false
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			small = false
			continue
		}
		if unicode.IsUpper(r) && small {
			flush()
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	flush()
	return out
}

// find is the function of tool_search.
func (x *toolIndex) find(_ context.Context, q lookup) (llm.ToolResult, error) {
	tools := x.search(q.Query)
	if len(tools) == 0 {
		return llm.TextResult("No tool fits these words. Try others: what it does, or what it does it to."), nil
	}

	var b strings.Builder
	b.WriteString("These can be called from now on:")
	f := found{}
	for _, t := range tools {
		about, _, _ := strings.Cut(t.Description, "\n")
		fmt.Fprintf(&b, "\n%s: %s", t.Name, text.Clip(about, 200))
		f.Found = append(f.Found, t.Name)
	}
	res := llm.TextResult(b.String())
	var err error
	res.Data, err = json.Marshal(f)
	return res, err
}

// search returns the tools that fit a query best, the best first. A rare word counts more than a
// common word, and the name of a tool counts most.
func (x *toolIndex) search(query string) []*pawl.Tool {
	words := searchWords(query)
	slices.Sort(words)
	words = slices.Compact(words)

	scores := map[*pawl.Tool]float64{}
	var hits []*pawl.Tool
	for i, t := range x.tools {
		score := 0.0
		for _, w := range words {
			score += x.words[i][w] * math.Log(1+float64(len(x.tools))/float64(max(1, x.docs[w])))
		}
		if strings.EqualFold(t.Name, strings.TrimSpace(query)) {
			score = math.Inf(1)
		}
		if score > 0 {
			scores[t] = score
			hits = append(hits, t)
		}
	}
	slices.SortStableFunc(hits, func(a, b *pawl.Tool) int { return cmp.Compare(scores[b], scores[a]) })
	return hits[:min(len(hits), x.most)]
}
