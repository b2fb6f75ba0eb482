package knowledge

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

const (
	fewHits  = 5
	mostHits = 20
	maxShown = 24 << 10 // bytes of a result
	maxWords = 800      // bytes shown of a message
)

// searchData is the Data of a result: the positions of the hits.
type searchData struct {
	Documents     []documentData `json:"documents"`
	Conversations []messageData  `json:"conversations"`
	Notes         []string       `json:"notes,omitempty"`
}

type documentData struct {
	Document string `json:"document"`
	Index    int    `json:"index"`
	Title    string `json:"title,omitempty"`
	Source   string `json:"source,omitempty"`
	Heading  string `json:"heading,omitempty"`
	Shared   bool   `json:"shared,omitempty"`
}

type messageData struct {
	Thread string    `json:"thread"`
	Seq    int       `json:"seq"`
	Role   string    `json:"role,omitempty"`
	Time   time.Time `json:"time,omitzero"`
}

type searchArgs struct {
	Query string
	Limit float64
}

// errNoScope ends a run: only its program can say whose documents are searched.
var errNoScope = pawl.AbortError(errors.New("nothing is searched here: the program did not say whose documents these are; " +
	"set store.WithScope in the context of the run, or Options.Scope"))

func (s *Set) search(ctx context.Context, a searchArgs) (llm.ToolResult, error) {
	if strings.TrimSpace(a.Query) == "" {
		return llm.ErrorResult("query is empty. Write what to look for: a question, or words."), nil
	}
	scope, ok := store.ActingScope(ctx, s.opts.Scope)
	if !ok {
		return llm.ToolResult{}, errNoScope
	}
	scope.Thread = cmp.Or(pawl.RunOptionsFrom(ctx).Thread, scope.Thread)
	found, err := s.Find(ctx, scope, a.Query, int(min(a.Limit, mostHits)))
	if err != nil {
		return llm.ToolResult{}, err
	}
	text, data := found.shown(a.Query)
	return toolrun.Result(text, data)
}

// Text returns the hits for query as the text for a model: quoted, with sources.
func (f *Found) Text(query string) string {
	text, _ := f.shown(query)
	return text
}

// shown returns the hits as text for a model and their positions for a program.
func (f *Found) shown(query string) (string, searchData) {
	data := searchData{Documents: []documentData{}, Conversations: []messageData{}, Notes: f.Notes}
	var b strings.Builder
	for _, n := range f.Notes {
		fmt.Fprintf(&b, "[%s]\n", n)
	}

	// An entry is written whole or not at all: half a passage would be quoted as if it were one.
	left := 0
	write := func(title, head, text string) bool {
		entry := head + "\n" + quoted(text) + "\n"
		if b.Len()+len(title)+len(entry) > maxShown {
			left++
			return false
		}
		b.WriteString(title + entry)
		return true
	}

	title := "From documents:\n"
	for _, h := range f.Documents {
		head := fmt.Sprintf("[%d] %s", len(data.Documents)+1, origin(h))
		if write(title, head, h.Text) {
			data.Documents = append(data.Documents,
				documentData{h.Document, h.Index, h.Title, h.Source, h.Heading, h.Shared})
			title = ""
		}
	}

	title = "From past conversations:\n"
	for _, h := range f.Messages {
		m := h.Message
		head := fmt.Sprintf("[%s, %s, conversation %s]",
			m.Message.Role, m.Time.Format(time.DateOnly), line(m.Thread, 80))
		if write(title, head, text.Clip(m.Message.Text(), maxWords)) {
			data.Conversations = append(data.Conversations,
				messageData{m.Thread, m.Seq, string(m.Message.Role), m.Time})
			title = ""
		}
	}

	switch {
	case left > 0:
		fmt.Fprintf(&b, "[%d more were found; there is no room for them. Ask for less at a time, "+
			"with other words.]\n", left)
	case len(data.Documents)+len(data.Conversations) == 0:
		fmt.Fprintf(&b, "Nothing was found for %q. Other words may find something; "+
			"else it is not in the documents.\n", line(query, 200))
	}
	return strings.TrimSuffix(b.String(), "\n"), data
}

// origin returns the source of a chunk.
func origin(h store.ChunkHit) string {
	name := cmp.Or(line(h.Title, 120), line(h.Document, 120))
	if h.Heading != "" && h.Heading != h.Title {
		name += " > " + line(strings.TrimPrefix(h.Heading, h.Title+" > "), 240)
	}
	if h.Source != "" && h.Source != name {
		name += " (" + line(h.Source, 240) + ")"
	}
	return name
}

// quoted marks each line as a quotation.
func quoted(s string) string {
	return "> " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n> ")
}

// line returns s as one line of at most most bytes.
func line(s string, most int) string { return text.Clip(strings.Join(strings.Fields(s), " "), most) }

// Found holds the results of a search, the best first.
type Found struct {
	Documents []store.ChunkHit   // parts of documents
	Messages  []store.MessageHit // from past conversations
	Notes     []string           // sources that could not be searched, with the reason
}

// Find searches as knowledge_search does. limit applies to documents and to conversations
// separately; 0 means 5, and the maximum is 20. s.Thread is the conversation to leave out.
func (s *Set) Find(ctx context.Context, sc store.Scope, query string, limit int) (*Found, error) {
	if limit <= 0 {
		limit = fewHits
	}
	limit = min(limit, mostHits)
	current := sc.Thread
	sc.Thread = ""

	f := new(Found)
	seen := map[string]bool{} // texts of results
	if err := s.findDocuments(ctx, sc, query, limit, f, seen); err != nil {
		return nil, err
	}
	if s.opts.Threads == nil {
		return f, nil
	}

	// many may belong to the current conversation
	messages, err := s.opts.Threads.SearchMessages(ctx, sc, store.Query{Text: query, Limit: 200})
	if err != nil {
		return nil, err
	}
	for _, h := range messages {
		text := h.Message.Message.Text()
		if h.Message.Thread != current && !seen[text] && len(f.Messages) < limit {
			f.Messages = append(f.Messages, h)
			seen[text] = true
		}
	}
	return f, nil
}

// findDocuments adds the documents that fit a query by words and, with an embedder, by meaning. If
// meaning cannot be searched, a note says so.
func (s *Set) findDocuments(ctx context.Context, sc store.Scope, query string, limit int, f *Found,
	seen map[string]bool) error {
	// twice the limit, because chunks may be duplicates
	q := store.Query{Text: query, Limit: 2 * limit, Shared: s.opts.Shared}
	if e := s.opts.Embedder; e != nil {
		v, err := store.Embed(ctx, e, store.ForQuery, query)
		switch {
		case err == nil:
			q.Vector = v[0]
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			f.Notes = append(f.Notes, fmt.Sprintf("Meaning could not be searched (%s): "+
				"these were found by their words only.",
				line(err.Error(), 300)))
		}
	}

	hits, err := s.db.SearchChunks(ctx, sc, q)
	if err != nil {
		return err
	}
	model := q.Vector.Model
	sameModel := func(h store.ChunkHit) bool { return h.Vector.Model == model }
	if model != "" && len(hits) > 0 && !slices.ContainsFunc(hits, sameModel) {
		f.Notes = append(f.Notes, fmt.Sprintf("No document was taken in with the embedding model %s: "+
			"these were found by their words only.", model))
	}

	for _, h := range hits {
		if !seen[h.Text] && len(f.Documents) < limit {
			f.Documents = append(f.Documents, h)
		}
		seen[h.Text] = true
	}
	return nil
}
