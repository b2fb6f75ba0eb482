package fault

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/mutant"
	"github.com/pawl-go/pawl/store"
)

// Threads returns the faults that storetest.TestThreads finds.
func Threads() []mutant.Mutant[store.Threads] {
	return []mutant.Mutant[store.Threads]{
		ofThreads("drops the title", "life", func(f *threads) {
			next := f.onPutThread
			f.onPutThread = func(ctx context.Context, sc store.Scope, v store.Thread) (store.Thread, error) {
				v.Title = ""
				return next(ctx, sc, v)
			}
		}),
		ofThreads("drops the meta", "life", func(f *threads) {
			next := f.onPutThread
			f.onPutThread = func(ctx context.Context, sc store.Scope, v store.Thread) (store.Thread, error) {
				v.Meta = nil
				return next(ctx, sc, v)
			}
		}),
		ofThreads("sets another time of creation", "life", func(f *threads) {
			next := f.onPutThread
			f.onPutThread = func(ctx context.Context, sc store.Scope, v store.Thread) (store.Thread, error) {
				v.Created = time.Time{}
				return next(ctx, sc, v)
			}
		}),
		ofThreads("creates a changed thread anew", "life", func(f *threads) {
			next, db := f.onPutThread, f.threadStore
			f.onPutThread = func(ctx context.Context, sc store.Scope, v store.Thread) (store.Thread, error) {
				if err := db.DeleteThread(ctx, sc, v.ID); err != nil && v.Version != "" {
					return v, err
				}
				v.Version = ""
				return next(ctx, sc, v)
			}
		}),
		ofThreads("keeps a deleted thread", "life", func(f *threads) {
			db := f.threadStore
			f.onDeleteThread = func(ctx context.Context, sc store.Scope, id string) error {
				_, err := db.Thread(ctx, sc, id)
				return err
			}
		}),
		ofThreads("deletes what does not exist", "life", func(f *threads) {
			next := f.onDeleteThread
			f.onDeleteThread = func(ctx context.Context, sc store.Scope, id string) error {
				if err := next(ctx, sc, id); !errors.Is(err, store.ErrNotFound) {
					return err
				}
				return nil
			}
		}),
		ofThreads("changes any version", "versions", func(f *threads) {
			next := f.onPutThread
			f.onPutThread = func(ctx context.Context, sc store.Scope, v store.Thread) (store.Thread, error) {
				v.Version = ""
				return next(ctx, sc, v)
			}
		}),
		ofThreads("returns no version", "versions", func(f *threads) {
			next := f.onThread
			f.onThread = func(ctx context.Context, sc store.Scope, id string) (store.Thread, error) {
				v, err := next(ctx, sc, id)
				v.Version = ""
				return v, err
			}
		}),
		ofThreads("appends behind any message", "messages", func(f *threads) {
			next, db := f.onAppendMessages, f.threadStore
			f.onAppendMessages = func(ctx context.Context, sc store.Scope, id string, have int,
				msgs ...llm.Message) error {
				v, err := db.Thread(ctx, sc, id)
				if err != nil {
					return err
				}
				return next(ctx, sc, id, v.Messages, msgs...)
			}
		}),
		ofThreads("appends the first message only", "messages", func(f *threads) {
			next := f.onAppendMessages
			f.onAppendMessages = func(ctx context.Context, sc store.Scope, id string, have int,
				msgs ...llm.Message) error {
				return next(ctx, sc, id, have, msgs[:1]...)
			}
		}),
		ofThreads("appends to a thread that does not exist", "messages", func(f *threads) {
			next, db := f.onAppendMessages, f.threadStore
			f.onAppendMessages = func(ctx context.Context, sc store.Scope, id string, have int,
				msgs ...llm.Message) error {
				err := next(ctx, sc, id, have, msgs...)
				if errors.Is(err, store.ErrNotFound) {
					_, err = db.PutThread(ctx, sc, store.Thread{ID: id})
				}
				return err
			}
		}),
		ofThreads("appends after the end of the context", "messages", func(f *threads) {
			next := f.onAppendMessages
			f.onAppendMessages = func(ctx context.Context, sc store.Scope, id string, have int,
				msgs ...llm.Message) error {
				return next(context.WithoutCancel(ctx), sc, id, have, msgs...)
			}
		}),
		ofThreads("drops calls", "messages", func(f *threads) {
			next := f.onAppendMessages
			f.onAppendMessages = func(ctx context.Context, sc store.Scope, id string, have int,
				msgs ...llm.Message) error {
				kept := slices.Clone(msgs)
				for i, m := range kept {
					kept[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool {
						_, ok := p.(llm.ToolCall)
						return ok
					})
				}
				return next(ctx, sc, id, have, kept...)
			}
		}),
		ofThreads("begins with the message after", "messages", func(f *threads) {
			next := f.onMessages
			f.onMessages = func(ctx context.Context, sc store.Scope, id string, from,
				limit int) ([]store.Message, error) {
				return next(ctx, sc, id, from+1, limit)
			}
		}),
		ofThreads("ignores the limit of messages", "messages", func(f *threads) {
			next := f.onMessages
			f.onMessages = func(ctx context.Context, sc store.Scope, id string, from,
				limit int) ([]store.Message, error) {
				return next(ctx, sc, id, from, 0)
			}
		}),
		ofThreads("ignores the thread of a search", "search", func(f *threads) {
			next := f.onSearchMessages
			f.onSearchMessages = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MessageHit,
				error) {
				sc.Thread = ""
				return next(ctx, sc, q)
			}
		}),
		ofThreads("ignores the limit of a search", "search", func(f *threads) {
			next := f.onSearchMessages
			f.onSearchMessages = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MessageHit,
				error) {
				q.Limit = 0
				return next(ctx, sc, q)
			}
		}),
		ofThreads("finds the worst first", "search", func(f *threads) {
			next := f.onSearchMessages
			f.onSearchMessages = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MessageHit,
				error) {
				hits, err := next(ctx, sc, q)
				slices.Reverse(hits)
				return hits, err
			}
		}),
		ofThreads("finds one word only", "search", func(f *threads) {
			next := f.onSearchMessages
			f.onSearchMessages = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MessageHit,
				error) {
				words := strings.Fields(q.Text)
				q.Text = strings.Join(words[:min(1, len(words))], " ")
				return next(ctx, sc, q)
			}
		}),
		ofThreads("searches calls", "search", func(f *threads) {
			next := f.onSearchMessages
			f.onSearchMessages = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MessageHit,
				error) {
				if q.Text == "secretword" {
					q.Text = "leave"
				}
				return next(ctx, sc, q)
			}
		}),
		ofThreads("ignores where a page begins", "lists", func(f *threads) {
			next := f.onThreads
			f.onThreads = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Thread, error) {
				p.After = ""
				return next(ctx, sc, p)
			}
		}),
		ofThreads("ignores the size of a page", "lists", func(f *threads) {
			next := f.onThreads
			f.onThreads = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Thread, error) {
				p.Limit = 0
				return next(ctx, sc, p)
			}
		}),
		ofThreads("lists in reverse", "lists", func(f *threads) {
			next := f.onThreads
			f.onThreads = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Thread, error) {
				all, err := next(ctx, sc, p)
				slices.Reverse(all)
				return all, err
			}
		}),
		ofThreads("lets two append behind one message", "race", func(f *threads) {
			next, db := f.onAppendMessages, f.threadStore
			f.onAppendMessages = func(ctx context.Context, sc store.Scope, id string, have int,
				msgs ...llm.Message) error {
				v, err := db.Thread(ctx, sc, id)
				if err != nil || have > 0 {
					return err
				}
				for errors.Is(next(ctx, sc, id, v.Messages, msgs...), store.ErrConflict) {
					v, err = db.Thread(ctx, sc, id)
					if err != nil {
						return err
					}
				}
				return nil
			}
		}),
		ofThreads("ignores the user in lists", "scopes", func(f *threads) {
			next := f.onThreads
			f.onThreads = func(ctx context.Context, sc store.Scope, p store.Page) ([]store.Thread, error) {
				own, err := next(ctx, sc, p)
				if err != nil || sc.User == "" {
					return own, err
				}
				more, err := next(ctx, wider(sc), p)
				return append(own, more...), err
			}
		}),
		ofThreads("ignores the user in searches", "scopes", func(f *threads) {
			next := f.onSearchMessages
			f.onSearchMessages = func(ctx context.Context, sc store.Scope, q store.Query) ([]store.MessageHit,
				error) {
				own, err := next(ctx, sc, q)
				if err != nil || sc.User == "" {
					return own, err
				}
				more, err := next(ctx, wider(sc), q)
				return append(own, more...), err
			}
		}),
		ofThreads("reads threads of other users", "property", func(f *threads) {
			next := f.onThread
			f.onThread = func(ctx context.Context, sc store.Scope, id string) (store.Thread, error) {
				v, err := next(ctx, sc, id)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, wider(sc), id)
				}
				return v, err
			}
		}),
		ofThreads("deletes threads of other users", "property", func(f *threads) {
			next := f.onDeleteThread
			f.onDeleteThread = func(ctx context.Context, sc store.Scope, id string) error {
				err := next(ctx, sc, id)
				if errors.Is(err, store.ErrNotFound) {
					return next(ctx, wider(sc), id)
				}
				return err
			}
		}),
		ofThreads("takes any meta", "bad input", func(f *threads) {
			next := f.onPutThread
			f.onPutThread = func(ctx context.Context, sc store.Scope, v store.Thread) (store.Thread, error) {
				if !json.Valid(v.Meta) {
					v.Meta = nil
				}
				return next(ctx, sc, v)
			}
		}),
		ofThreads("invents an ID", "bad input", func(f *threads) {
			next := f.onPutThread
			f.onPutThread = func(ctx context.Context, sc store.Scope, v store.Thread) (store.Thread, error) {
				if v.ID == "" {
					v.ID = "none"
				}
				return next(ctx, sc, v)
			}
		}),
	}
}

func ofThreads(name, part string, replace func(f *threads)) mutant.Mutant[store.Threads] {
	return mutant.Mutant[store.Threads]{
		Name:  name,
		Part:  part,
		Plant: func(db store.Threads) store.Threads { return plantThreads(db, replace) },
	}
}
