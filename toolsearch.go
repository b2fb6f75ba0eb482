package pawl

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
	"unicode/utf8"

	"github.com/pawl-go/pawl/llm"
)

// toolSearch is the name of the tool that finds deferred tools.
const toolSearch = "tool_search"

//go:embed toolsearch.md
var toolSearchText string

// SearchOptions say when Search pays and what stays in sight. The zero value is ready.
type SearchOptions struct {
	Least  int                   // fewer tools than this are offered as they are; 0: 20
	Always func(tool *Tool) bool // tools that are offered from the beginning; nil: none
	Most   int                   // tools that one search finds; 0: 5, at most 20
}

// Search returns the tools of set, offered on demand: a run tells the model of tool_search, and of those that it has found. Each can be called all the
// same by whoever knows its name. From about 20 tools on, the descriptions that are not sent are worth more than the request that finds one.
//
// What was found stands in the transcript, and is offered from the next request on, behind what was offered before. One Search serves an agent: put all sets into one Toolsets. o may be nil.
func Search(set Toolset, o *SearchOptions) Toolset {
	s := &searchable{set: set}
	if o != nil {
		s.opts = *o
	}
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
	set  Toolset
	opts SearchOptions

	mu   sync.Mutex
	from []*Tool // what the set gave last
	out  []*Tool // and what came of it: the same tools as long as the set gives the same
}

// Tools returns the tools, those that are offered from the beginning first.
func (s *searchable) Tools(ctx context.Context) ([]*Tool, error) {
	tools, err := s.set.Tools(ctx)
	if err != nil || len(tools) < s.opts.Least {
		return tools, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out != nil && slices.Equal(tools, s.from) {
		return s.out, nil
	}
	var out, later []*Tool
	for _, t := range tools {
		if s.opts.Always != nil && s.opts.Always(t) {
			out = append(out, t)
			continue
		}
		c := t.Clone()
		c.Deferred = true
		later = append(later, c)
	}
	find := Func(toolSearch, strings.TrimSpace(toolSearchText)+fmt.Sprintf("\n\nThere are %d such tools.", len(later)), newToolIndex(later, s.opts.Most).find)
	find.Effect = Pure
	s.from, s.out = slices.Clone(tools), append(append(out, find), later...)
	return s.out, nil
}

// lookup is what the model asks for.
type lookup struct {
	Query string `json:"query" jsonschema:"what the tool should do, in a few words"`
}

// found is what tool_search leaves for the run.
type found struct {
	Found []string `json:"found"`
}

// toolIndex finds tools by the words of their names and descriptions.
type toolIndex struct {
	tools []*Tool
	words []map[string]float64 // of each tool, with what they weigh
	docs  map[string]int       // in how many tools a word stands
	most  int
}

func newToolIndex(tools []*Tool, most int) *toolIndex {
	x := &toolIndex{tools: tools, docs: map[string]int{}, most: most}
	for _, t := range tools {
		words := map[string]float64{}
		for _, w := range searchWords(t.Description) {
			words[w] = 1
		}
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

// searchWords cuts text into words as people type them: small letters, names like readFile and read_file in two, the ends of plurals off.
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

func (x *toolIndex) find(_ context.Context, q lookup) (llm.ToolResult, error) {
	type hit struct {
		tool  *Tool
		score float64
	}
	words := searchWords(q.Query)
	slices.Sort(words)
	words = slices.Compact(words)
	var hits []hit
	for i, t := range x.tools {
		score := 0.0
		for _, w := range words {
			score += x.words[i][w] * math.Log(1+float64(len(x.tools))/float64(max(1, x.docs[w])))
		}
		if strings.EqualFold(t.Name, strings.TrimSpace(q.Query)) {
			score = math.Inf(1)
		}
		if score > 0 {
			hits = append(hits, hit{t, score})
		}
	}
	if len(hits) == 0 {
		return llm.TextResult("No tool fits these words. Try others: what it does, or what it does it to."), nil
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	hits = hits[:min(len(hits), x.most)]
	var b strings.Builder
	b.WriteString("These can be called from now on:")
	f := found{}
	for _, h := range hits {
		text, _, _ := strings.Cut(h.tool.Description, "\n")
		fmt.Fprintf(&b, "\n%s: %s", h.tool.Name, head(text, 200))
		f.Found = append(f.Found, h.tool.Name)
	}
	res := llm.TextResult(b.String())
	var err error
	res.Data, err = json.Marshal(f)
	return res, err
}

// head returns the beginning of s.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// later is what a run knows of deferred tools: which the model has been told of, by what stands in the transcript and nothing else. So a run
// that goes on elsewhere offers the same.
type later struct {
	waiting map[string]*Tool
	offered []*Tool
	seen    int             // messages
	search  map[string]bool // calls of tool_search in the last reply
}

// newLater returns nil where nothing is deferred, or nothing could find it.
func newLater(tools []*Tool, choice llm.ToolChoice) *later {
	if !slices.ContainsFunc(tools, func(t *Tool) bool { return t.Deferred }) || find(tools, toolSearch) == nil {
		return nil
	}
	l := &later{waiting: map[string]*Tool{}, search: map[string]bool{}}
	for _, t := range tools {
		if t.Deferred && !slices.Contains(choice.Names, t.Name) {
			l.waiting[t.Name] = t
		} else {
			l.offered = append(l.offered, t)
		}
	}
	return l
}

// tools returns what a request offers over the transcript msgs. What was offered before comes first, in the same order.
func (l *later) tools(msgs []llm.Message) []*Tool {
	for ; l.seen < len(msgs); l.seen++ {
		for _, p := range msgs[l.seen].Parts {
			switch p := p.(type) {
			case llm.ToolCall:
				if p.Name == toolSearch {
					l.search[p.ID] = true
				}
				l.offer(p.Name)
			case llm.ToolResult:
				var f found
				if l.search[p.CallID] && !p.IsError && json.Unmarshal(p.Data, &f) == nil {
					for _, name := range f.Found {
						l.offer(name)
					}
				}
			}
		}
		if msgs[l.seen].Role == llm.RoleTool {
			clear(l.search)
		}
	}
	return l.offered
}

func (l *later) offer(name string) {
	if t := l.waiting[name]; t != nil {
		delete(l.waiting, name)
		l.offered = append(slices.Clip(l.offered), t) // a request that was sent keeps its own
	}
}
