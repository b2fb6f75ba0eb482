package assemble

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/store"
)

// NewRunID returns a new random ID. Its first letters are enough to find the run.
func NewRunID() string { return strings.ToLower(rand.Text()[:8]) }

// Journal gives access to the durable runs of a scope in a database.
type Journal struct {
	*durable.Engine
	StoreFlags
	at       func() time.Time
	Database *agentfile.Database // opened by OpenRuns; nil means that the caller owns the database
}

// NewJournal returns the runs of db. A nil lease means the default.
func NewJournal(db store.Journal, f StoreFlags, lease *time.Duration) *Journal {
	e := &durable.Engine{Journal: db}
	if lease != nil {
		e.Lease = *lease
	}
	return &Journal{Engine: e, StoreFlags: f, at: time.Now}
}

// Scoped returns ctx with the tenant and the user of the runs.
func (j *Journal) Scoped(ctx context.Context) context.Context {
	return store.WithScope(ctx, j.StoreFlags.Scope())
}

// Command returns the command line for a run of this database, for hints.
func (j *Journal) Command(words ...string) string {
	f := j.StoreFlags
	if strings.Contains(f.DB, "://") {
		f.DB = "…" // the address may contain a password
	}
	return commandLine(words, &f)
}

// Failed returns the failure for an error of a run.
func (j *Journal) Failed(id string, err error) error {
	if known := j.Known(id, err); known != nil {
		return known
	}
	return cli.Failed(err)
}

// Known returns the failure for an error of the engine. It returns nil for other errors.
func (j *Journal) Known(id string, err error) error {
	id = cli.Visible(id)
	var (
		mismatch *durable.Mismatch
		limit    *durable.LimitError
	)
	resume := j.Command("runs", "resume", id)
	switch {
	case errors.Is(err, durable.ErrLost):
		return cli.Fail(cli.StatusFailed, err, j.Command("runs", "show", id)+" shows its progress")
	case errors.Is(err, store.ErrUnavailable):
		return cli.Fail(cli.StatusStorage, err, cli.StorageHint+"; then "+resume)

	// These say more than ErrChanged, which is in their trees.
	case errors.As(err, &mismatch):
		return cli.Fail(cli.StatusFailed, err, "")
	case errors.As(err, &limit):
		return cli.Fail(cli.StatusFailed, err, j.Command("runs", "fork", id, "--at", strconv.Itoa(limit.Step))+
			", with the flag of the raised limit, starts a run that goes on from there")
	case errors.Is(err, durable.ErrChanged):
		return cli.Fail(cli.StatusFailed, err,
			"resume it with its original agent, or with "+j.Command("runs", "resume", id, "--accept-changes")+
				"; "+j.Command("runs", "fork", id, "--at", "STEP")+" starts another run from here")

	case errors.Is(err, durable.ErrCorrupt):
		return cli.Fail(cli.StatusFailed, err, j.Command("runs", "verify", id))
	case errors.Is(err, store.ErrConflict):
		return cli.Fail(cli.StatusUsage, err, "--run ANOTHER starts another run; "+resume+" resumes this one")
	}
	return nil
}

// Settling returns the commands that settle the open calls of a run.
func (j *Journal) Settling(id string, open []OpenCall) string {
	return SettlingBy(j.Command, id, open, j.Command("effects", "reconcile", id, "KEY")+
		" --happened RESULT, --again or --never") + "; then " + j.Command("runs", "resume", id)
}

// SettlingBy returns the command lines that settle the open calls of a run. happened is the command
// for a call that may have happened.
func SettlingBy(command func(...string) string, id string, open []OpenCall, happened string) string {
	approve, answer, unknown := Wanted(open)
	var ways []string
	if approve {
		ways = append(ways, command("runs", "approve|deny", id, "KEY"))
	}
	if answer {
		ways = append(ways, command("runs", "answer", id, "KEY=TEXT"))
	}
	if unknown {
		ways = append(ways, "it is unknown whether the call happened: "+happened)
	}
	return strings.Join(ways, "; ")
}

// inboxItem is a pending call in the form that --json prints.
type inboxItem struct {
	Run  string          `json:"run"`
	Task string          `json:"task"`
	Key  llm.Key         `json:"key"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	// approval, result, or word; word asks whether the call happened
	Wants string `json:"wants"`
	Why   string `json:"why,omitempty"`
}

// Inbox returns the pending calls of all runs, the oldest run first.
func (j *Journal) Inbox(ctx context.Context, sys *cli.System) ([]inboxItem, error) {
	all := []inboxItem{} // a list in JSON, too
	runs, err := j.All(ctx, "")
	if err != nil {
		return nil, err
	}

	// The person who has waited longest comes first.
	for _, r := range slices.Backward(runs) {
		if r.State == store.JournalOver {
			continue
		}
		if j.StateOf(r) == "changed" {
			j.noticeChanged(ctx, sys, r)
		}
		items, err := j.inboxOf(ctx, sys, r)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}

// noticeChanged says that a run waits for a decision about its agent, which is not in the inbox.
func (j *Journal) noticeChanged(ctx context.Context, sys *cli.System, r store.JournalRun) {
	command := []string{"runs", "resume", r.ID, "--accept-changes"}
	// A run of pawl serve has no recipe.
	if meta, err := j.Meta(j.Scoped(ctx), r.ID); err == nil && ReadRecipe(meta) == nil {
		command = append(command, "--file", "FILE.yaml")
	}
	cause := Secrets(sys.Env, nil).String(SummaryOf(r).Cause)
	sys.Notice("run " + r.ID + " cannot continue: " + cause + "; " + j.Command(command...))
}

// inboxOf returns the pending calls of a run.
func (j *Journal) inboxOf(ctx context.Context, sys *cli.System, r store.JournalRun) ([]inboxItem, error) {
	ws, err := j.Pending(j.Scoped(ctx), r.ID)
	if err != nil || len(ws) == 0 {
		return nil, err
	}
	// The journal has the original bytes. A person reads them without secrets.
	hide, err := j.Hide(ctx, sys, r.ID, nil)
	if err != nil {
		return nil, err
	}

	var items []inboxItem
	for _, o := range WaitingCalls(ws) {
		item := inboxItem{
			Run:   r.ID,
			Task:  hide.String(r.Task),
			Key:   o.Key,
			Tool:  o.Name,
			Args:  hide.Call(llm.ToolCall{Name: o.Name, Args: o.Args}).Args,
			Wants: "approval",
			Why:   hide.String(o.Why),
		}
		switch {
		case o.Outcome == pawl.OutcomeUnknown:
			item.Wants = "word"
		case o.waiting.Passive:
			item.Wants = "result"
		}
		items = append(items, item)
	}
	return items, nil
}

// LastRun is a name for the run that was updated last.
const LastRun = "last"

// OpenRuns opens the runs of the database. The caller closes the journal. A relative file name is
// made absolute, because resuming a run changes the working directory.
func (f *StoreFlags) OpenRuns(sys *cli.System) (*Journal, error) {
	typed := *f
	if f.DB != "" && !strings.Contains(f.DB, "://") {
		if path, err := filepath.Abs(f.DB); err == nil {
			f.DB = path
		}
	}
	d, db, err := f.Open(sys, false)
	if err != nil {
		var failure *cli.Failure
		if errors.As(err, &failure) && errors.Is(err, store.ErrNotFound) {
			failure.Hint = "pawl run --durable creates it"
		}
		return nil, err
	}

	// Hints show the name as the person typed it.
	j := NewJournal(db, typed, nil)
	j.Database = d
	return j, nil
}

// WithRuns calls do with the runs of the database.
func (f *StoreFlags) WithRuns(sys *cli.System, do func(*Journal) error) error {
	j, err := f.OpenRuns(sys)
	if err != nil {
		return err
	}
	defer j.Close()
	return do(j)
}

// WithRun calls do with the run called name: see Find.
func (f *StoreFlags) WithRun(ctx context.Context, sys *cli.System, name string,
	do func(*Journal, store.JournalRun) error) error {
	return f.WithRuns(sys, func(j *Journal) error {
		r, err := j.Find(ctx, name)
		if err != nil {
			return err
		}
		return do(j, r)
	})
}

// Close closes the database that OpenRuns opened.
// no error is lost: each write has already returned its own
func (j *Journal) Close() { _ = j.Database.Close() }

// RunID returns the ID of r.
func RunID(r store.JournalRun) string { return r.ID }

// All returns the runs of the scope, the last one first. An empty state means all states.
func (j *Journal) All(ctx context.Context, state string) ([]store.JournalRun, error) {
	runs, err := cli.Everything(func(p store.Page) ([]store.JournalRun, error) {
		return j.Journal.JournalRuns(ctx, j.Scope(), state, p)
	}, RunID)
	slices.SortStableFunc(runs, func(a, b store.JournalRun) int { return b.Updated.Compare(a.Updated) })
	return runs, err
}

// Find returns the run with the ID name, with an ID that begins with name if it is the only one, or
// the last run if name is LastRun.
func (j *Journal) Find(ctx context.Context, name string) (store.JournalRun, error) {
	// A whole ID needs no list, and wins over runs whose ID begins with it.
	if name != LastRun && name != "" {
		r, err := j.Journal.JournalRun(ctx, j.Scope(), name)
		if err == nil || !errors.Is(err, store.ErrNotFound) && store.CheckID(name) == nil {
			return r, err
		}
	}

	runs, err := j.All(ctx, "")
	if err != nil {
		return store.JournalRun{}, err
	}

	if name == LastRun {
		if len(runs) == 0 {
			return store.JournalRun{}, cli.Fail(cli.StatusFailed, errors.New("there is no run yet"),
				j.Command("run")+" --durable … starts one")
		}
		return runs[0], nil
	}

	var found []store.JournalRun
	for _, r := range runs {
		if name != "" && strings.HasPrefix(r.ID, name) {
			found = append(found, r)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return store.JournalRun{}, cli.Unknown("run", name, cli.Names(runs, RunID), j.Command("runs", "list"))
	}
	ids := cli.Names(found[:min(len(found), 5)], RunID)
	slices.Sort(ids)
	several := fmt.Errorf("%s begin with %s: %s", cli.Count(len(found), "run"), name, strings.Join(ids, ", "))
	return store.JournalRun{}, cli.Fail(cli.StatusFailed, several, "give more of the ID")
}

// Hide returns a redactor for the secrets of a run: arguments that its tools mark, values of
// variables that were hidden when it started, and the secrets of more. A nil more means the keys of
// this environment.
func (j *Journal) Hide(ctx context.Context, sys *cli.System, id string, more *redact.Redactor) (*redact.Redactor,
	error) {
	meta, err := j.Meta(j.Scoped(ctx), id)
	if err != nil {
		return nil, j.Failed(id, err)
	}

	// The recipe has the names of secret variables alone. Their values are read today.
	var held []string
	if n := ReadRecipe(meta); n != nil {
		for _, name := range n.Secret {
			held = append(held, strings.TrimSpace(sys.Env(name)))
		}
	}
	if more == nil {
		more = Secrets(sys.Env, nil)
	}
	r, err := j.Redactor(j.Scoped(ctx), id, more)
	if err == nil {
		addKeys(r, held)
	}
	return r, err
}

// EffectsOf returns the effects of a run without its secrets.
func (j *Journal) EffectsOf(ctx context.Context, sys *cli.System, id string) ([]journal.LedgerEntry, error) {
	effects, err := j.Effects(j.Scoped(ctx), id)
	if err != nil {
		return nil, j.Failed(id, err)
	}
	hide, err := j.Hide(ctx, sys, id, nil)
	for i := range effects {
		effects[i] = effects[i].Redacted(hide)
	}
	return effects, err
}

// StateOf returns the state of a run for a list.
func (j *Journal) StateOf(r store.JournalRun) string {
	switch {
	case r.State == store.JournalOpen && r.Owner != "" && r.Until.After(j.at()):
		return "running"
	case r.Queued():
		return "queued"
	case r.State == store.JournalOpen:
		if w := SummaryOf(r).Waiting; w != nil {
			return w.String() // its provider is away
		}
		return "interrupted"
	case r.State == store.JournalOver:
		return string(cmp.Or(SummaryOf(r).Stop, "over"))
	}
	if code := SummaryOf(r).Code; code != "" && r.State == store.JournalFailed {
		return code
	}
	return r.State
}

// SummaryOf returns the summary of a run. It is zero until the run stops.
func SummaryOf(r store.JournalRun) (s durable.Summary) {
	_ = json.Unmarshal(r.Summary, &s) // it was written by package durable
	return s
}

// Free waits until no process holds the run. The lease of a crashed process has to expire first. It
// returns an error if the process renews its lease.
func (j *Journal) Free(ctx context.Context, sys *cli.System, id string) error {
	first, err := j.Journal.JournalRun(ctx, j.Scope(), id)
	if err != nil || first.Owner == "" || !first.Until.After(j.at()) {
		return err
	}
	sys.Notice(fmt.Sprintf("another process has the run; if it has died, the run is free at %s: waiting",
		first.Until.Local().Format(time.TimeOnly)))

	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return cli.Fail(cli.StatusInterrupted, errors.New("interrupted while another process had the run"), "")
		case <-t.C:
		}
		now, err := j.Journal.JournalRun(ctx, j.Scope(), id)
		switch {
		case err != nil:
			return err
		case now.Owner == "" || !now.Until.After(j.at()):
			return nil

		// Only a living process renews its lease, so waiting would not end.
		case now.Owner != first.Owner || !now.Until.Equal(first.Until):
			return cli.Fail(cli.StatusFailed, fmt.Errorf("run %s: %w, and that process is alive", id, durable.ErrLost),
				j.Command("runs", "cancel", id)+" stops it")
		}
	}
}
