package remember

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// The codes of notices. The texts of the first three are the IDs of memories.
const (
	NoticeUsed     = "memory_used"     // memories were recalled
	NoticeProposed = "memory_proposed" // memories were stored after an answer
	NoticeForgot   = "memory_forgot"   // memories were deleted to make room for proposed ones
	NoticeFailed   = "memory_failed"   // the store or the model failed; the run goes on without
)

// Bounds of what is recalled at the start of a turn, and of what is proposed at its end.
const (
	maxRecalled = 12
	maxBytes    = 2400 // about 800 tokens
	recent      = 50   // messages in which an earlier recall still counts
	halfLife    = 90 * 24 * time.Hour
	maxProposed = 5
	maxSummary  = 600
)

// model recalls memories before the first request of a turn, and proposes memories after an answer.
type model struct {
	inner llm.Model
	set   *Set
}

// Unwrap returns the inner model.
func (m *model) Unwrap() llm.Model { return m.inner }

// Stream replies with a call of memory_list if memories fit the message of the user, and asks the
// inner model otherwise. Before the end of an answer it stores what another request proposes.
func (m *model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		notice := func(code string, ids []string, err error) bool {
			n := &llm.Notice{Code: code, Text: strings.Join(ids, ", ")}
			if err != nil {
				n.Code = NoticeFailed
				n.Text = err.Error()
			}
			return n.Text == "" || yield(llm.Delta{Notice: n}, nil)
		}

		ids, err := m.set.recall(ctx, req)
		// Without a scope, memories of one user could reach another. That is a mistake of the
		// program, and not only a missing recall.
		if err == errNoScope {
			yield(llm.Delta{}, err)
			return
		}
		args, _ := json.Marshal(map[string][]string{"ids": ids})
		switch {
		case !notice(NoticeUsed, ids, err):
			return
		case len(ids) > 0:
			call := llm.ToolCall{ID: "recall_" + strconv.Itoa(req.Turn), Name: m.set.List.Name, Args: args}
			_ = yield(llm.Delta{Part: call, Done: true}, nil) &&
				yield(llm.Delta{Requests: -1, Finish: llm.FinishReasonToolCalls}, nil)
			return
		}

		var reply llm.Response
		// Only the run of the user itself proposes: the answers of nested runs are for other
		// agents.
		proposes := m.set.opts.Write != "" && m.set.opts.Write != "tool" && depth(req.Key) == 2
		for d, err := range m.inner.Stream(ctx, req) {
			if proposes && err == nil {
				err = reply.Add(d)
			}
			if reply.Finish == llm.FinishReasonStop {
				asked, kept, failed := m.propose(ctx, req, reply.Message.Text())
				if !notice(NoticeProposed, kept.ids, failed) || !notice(NoticeForgot, kept.forgotten, nil) {
					return
				}
				d.Requests += 1 + asked.Requests
				d.Usage = reply.Usage.Plus(asked.Usage)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// recall returns the IDs of the memories for the last message of req, the best first, if it is the
// message of the user that begins the turn.
func (s *Set) recall(ctx context.Context, req *llm.Request) (ids []string, err error) {
	if s.opts.NoRecall || !beginsTurn(req) {
		return nil, nil
	}
	last := len(req.Messages) - 1
	p, err := s.place(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.ranked(ctx, p, req.Messages[last].Text())
	if err != nil {
		return nil, err
	}

	var known strings.Builder // the IDs of earlier recalls
	for _, m := range req.Messages[max(0, last-recent):] {
		for _, c := range m.Calls() {
			if c.Name == s.List.Name {
				known.Write(c.Args)
			}
		}
	}

	thread := pawl.RunOptionsFrom(ctx).Thread
	all = slices.DeleteFunc(all, func(m store.MemoryHit) bool {
		// The conversation itself has what its own summary says.
		own := thread != "" && m.Source.Thread == thread
		fits := m.Score > 0 || m.Source.Always
		return own || !fits || strings.Contains(known.String(), strconv.Quote(m.ID))
	})
	slices.SortStableFunc(all, func(a, b store.MemoryHit) int { return always(b) - always(a) })

	size := 0
	for _, m := range all[:min(len(all), maxRecalled)] {
		size += len(line(m.Memory))
		if size <= maxBytes {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}

// beginsTurn reports whether req is the first request of a turn of a run, which has the message of
// the user and may have calls.
func beginsTurn(req *llm.Request) bool {
	last := len(req.Messages) - 1
	if req.Key == "" || last < 0 || last != req.Turn {
		return false
	}
	return req.Choice.Mode == llm.ToolAuto
}

func always(m store.MemoryHit) int {
	if m.Source.Always {
		return 1
	}
	return 0
}

// ranked returns the memories that a model of this set may see, the best for a text first: by words
// and meaning, and newer ones before older ones. The score 0 means that the text does not fit.
func (s *Set) ranked(ctx context.Context, p place, said string) ([]store.MemoryHit, error) {
	q := store.Query{Text: text.Clip(said, 2000), Limit: 200}
	q.Vector = s.vector(ctx, store.ForQuery, q.Text)
	// The list holds the memories of this scope alone, a search also the memories of its threads.
	all, err := p.Memories.Memories(ctx, p.scope, store.Page{Limit: maxMemories})
	if err != nil {
		return nil, err
	}
	hits, err := p.SearchMemories(ctx, p.scope, q)
	score := map[string]float64{}
	for _, h := range hits {
		score[h.ID] = h.Score * (1 + 2*math.Exp2(-float64(time.Since(h.Created))/float64(halfLife)))
	}
	var ranked []store.MemoryHit
	for _, m := range all {
		if s.sees(m) {
			ranked = append(ranked, store.MemoryHit{Memory: m, Score: score[m.ID]})
		}
	}
	slices.SortStableFunc(ranked, func(a, b store.MemoryHit) int { return cmp.Compare(b.Score, a.Score) })
	return ranked, err
}

// proposal asks for memories.
const proposal = "From the message of the user and the answer below, name what will be worth knowing about " +
	"the user in later conversations: what the user likes, has decided, or asked to keep in mind.\n" +
	"\n" +
	"Write at most 5 lines, each \"- \" and one sentence that will be understood without this " +
	"conversation, from the words of the user alone. Leave out secrets and what is only true " +
	"for today. Write \"none\" if there is nothing."

// about asks for the summary of the conversation in addition.
const about = "\n\nThen write one more line, \"= \" and at most three short sentences: what the whole " +
	"conversation is about so far, what was decided, and what is left open. It will be found again in " +
	"other conversations."

// propose asks for memories by the message of the user and the answer: facts, and the summary of
// the conversation.
//
// An answer may repeat a result from outside. After such a result the request has the words of the
// user alone, so that the summary comes of nothing else.
func (m *model) propose(ctx context.Context, req *llm.Request, answer string) (
	asked *llm.Response, kept proposed, err error) {
	asked = new(llm.Response)
	p, err := m.set.place(ctx)
	if err != nil {
		return asked, kept, err
	}
	run := pawl.RunOptionsFrom(ctx)
	from := store.Source{Kind: "user", Run: run.RunID(), Key: req.Key, Outside: m.set.outside(req.Messages),
		Label: readBy(req.Messages)}
	// A model writes the summary, and the user's words are the source of the facts.
	summary := from
	summary.Kind = "model"
	summary.Thread = run.Thread
	summary.Unconfirmed = m.set.opts.Write == "ask"
	from.Unconfirmed = from.Outside || m.set.opts.Write == "ask"

	task := proposal
	said := "The user:\n" + req.Messages[req.Turn].Text()
	if !from.Outside {
		said += "\n\nThe answer:\n" + answer
	}
	if summary.Thread != "" {
		task += about
		before, err := m.summaryBefore(ctx, p, &summary)
		if err != nil {
			return asked, kept, err
		}
		said = before + said
	}
	asked, err = llm.Complete(ctx, m.inner, &llm.Request{
		Key:      req.Key + "/memory",
		Model:    req.Model,
		Messages: []llm.Message{llm.System(task), llm.User(said)},
		Settings: req.Settings,
	})
	if err != nil {
		return asked, kept, err
	}

	kept, err = m.addProposed(ctx, p, asked.Message.Text(), from, summary)
	return asked, kept, err
}

// proposed is what a proposal has changed.
type proposed struct {
	ids       []string // of the new memories
	forgotten []string // of the memories that were deleted to make room
}

// readBy returns the label of what a model writes after msgs.
func readBy(msgs []llm.Message) *llm.Label {
	l := llm.Label{By: llm.Typed, Readers: []string{llm.Everybody}}
	for _, m := range msgs {
		of, ok := m.Label()
		if ok && of.By < llm.Operator { // the operator's words are no secret
			l = l.Join(of)
		}
	}
	return l.Shared()
}

// joined returns the join of two labels. nil is a stranger's.
func joined(a, b *llm.Label) *llm.Label {
	if a == nil || b == nil {
		return nil
	}
	return a.Join(*b).Shared()
}

// summaryBefore returns what a request for a summary has of the earlier summary of the
// conversation, and passes the earlier properties on to the new one.
func (m *model) summaryBefore(ctx context.Context, p place, summary *store.Source) (text string, err error) {
	all, err := p.Memories.Memories(ctx, p.scope, store.Page{Limit: maxMemories})
	if err != nil {
		return "", err
	}
	for _, old := range all {
		if old.Source.Thread == summary.Thread && m.set.ours(old) {
			text = "The conversation before:\n" + old.Text + "\n\n" + text
			summary.Label = joined(summary.Label, old.Source.Label)
			summary.Always = old.Source.Always
			summary.Unconfirmed = summary.Unconfirmed || old.Source.Unconfirmed
		}
	}
	return text, nil
}

// addProposed stores the facts, and the summary if its source has a thread, that a reply to a
// proposal names.
func (m *model) addProposed(ctx context.Context, p place, reply string, from, summary store.Source) (
	kept proposed, err error) {
	for line := range strings.Lines(reply) {
		fact, isFact := strings.CutPrefix(strings.TrimSpace(line), "- ")
		topic, isTopic := strings.CutPrefix(fact, "= ")

		var now stored
		switch {
		case isTopic && !isFact && summary.Thread != "":
			now, err = m.set.add(ctx, p, store.Memory{Text: text.Clip(topic, maxSummary), Source: summary})
			now.added = true    // also in place of the summary before
			summary.Thread = "" // one summary is enough
		// Longer facts are texts, and each is recalled with all of its words.
		case isFact && len(fact) <= maxContent && len(kept.ids) < maxProposed:
			now, err = m.set.add(ctx, p, store.Memory{Text: fact, Source: from})
		}
		if err != nil {
			return kept, err
		}
		if now.added {
			kept.ids = append(kept.ids, now.ID)
		}
		if now.forgotten != nil {
			kept.forgotten = append(kept.forgotten, now.forgotten.ID)
		}
	}
	return kept, nil
}
