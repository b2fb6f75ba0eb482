package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/store"
)

// inboxCmd is what waits for a person, over all runs.
type inboxCmd struct {
	List    inboxListCmd   `cmd:"" default:"withargs" help:"List the calls that wait, the oldest run first. This is what pawl inbox does."`
	Approve runsApproveCmd `cmd:"" help:"Let calls run that wait for it."`
	Deny    runsDenyCmd    `cmd:"" help:"Refuse calls that wait."`
	Answer  runsAnswerCmd  `cmd:"" help:"Give calls that wait their results."`
}

// inboxItem is a call that waits, as --json prints it.
type inboxItem struct {
	Run     string          `json:"run"`
	Task    string          `json:"task"`
	Key     pawl.Key        `json:"key"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Wants   string          `json:"wants"` // approval, result, or word: whether it happened
	Why     string          `json:"why,omitempty"`
	Expires time.Time       `json:"expires,omitzero"`
}

// inbox returns what waits.
func (j *journal) inbox(ctx context.Context, sys *system) ([]inboxItem, error) {
	all := []inboxItem{}
	runs, err := j.all(ctx, "")
	if err != nil {
		return nil, err
	}
	for i := range runs { // the oldest first
		r := runs[len(runs)-1-i]
		if r.State == store.JournalOver {
			continue
		}
		ws, err := j.Pending(j.scoped(ctx), r.ID)
		if err != nil {
			return nil, err
		}
		if len(ws) == 0 {
			continue
		}
		hide, err := j.hide(ctx, sys, r.ID, nil)
		if err != nil {
			return nil, err
		}
		for _, o := range waitingCalls(ws) {
			item := inboxItem{Run: r.ID, Task: hide.String(r.Task), Key: o.Key, Tool: o.Name, Args: hide.Call(pawl.ToolCall{Name: o.Name, Args: o.Args}).Args, Wants: "approval", Why: hide.String(o.Why), Expires: o.Expires}
			switch {
			case o.Outcome == pawl.OutcomeUnknown:
				item.Wants = "word"
			case o.waiting.Passive:
				item.Wants = "result"
			}
			all = append(all, item)
		}
	}
	return all, nil
}

type inboxListCmd struct {
	JSON bool `name:"json" help:"Print a JSON list."`
	storeFlags
}

// Help says what to do with it.
func (*inboxListCmd) Help() string {
	return `Each call has its run and its key: pawl inbox approve RUN KEY lets it run, KEY='{"path":"b.txt"}' with other arguments; deny RUN KEY=REASON refuses it; answer RUN KEY=TEXT gives its result. Whether an interrupted call happened is said with pawl effects reconcile. Then pawl runs resume RUN goes on.`
}

// Run lists what waits.
func (c *inboxListCmd) Run(sys *system) error {
	j, err := c.openRuns(sys)
	if err != nil {
		return err
	}
	defer j.Close()
	items, err := j.inbox(context.Background(), sys)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(sys.out, items)
	}
	if len(items) == 0 {
		_, err := fmt.Fprintln(sys.out, "nothing waits")
		return err
	}
	for i, item := range items {
		if i == 0 || items[i-1].Run != item.Run {
			fmt.Fprintf(sys.out, "%s  %s\n", visible(item.Run), line(item.Task, max(40, sys.width-12)))
		}
		wants := map[string]string{"approval": "may it run?", "result": "what is its result?", "word": "did it happen?"}[item.Wants]
		fmt.Fprintf(sys.out, "  %-10s %s %s %s", item.Key, wants, visible(item.Tool), line(string(item.Args), max(40, sys.width-40)))
		if !item.Expires.IsZero() {
			fmt.Fprintf(sys.out, " (until %s)", moment(item.Expires, ""))
		}
		fmt.Fprintln(sys.out)
		if item.Why != "" {
			fmt.Fprintf(sys.out, "  %-10s %s\n", "", line(item.Why, max(40, sys.width-14)))
		}
	}
	return nil
}

// byFlag says who decides.
type byFlag struct {
	By string `name:"by" placeholder:"NAME" help:"Who says so; it is kept. Default: USER, as the system has it."`
}

// whoSays is who sits at the command line.
func whoSays(sys *system) string {
	if user := sys.env("USER"); user != "" {
		return user
	}
	return "the command line"
}

func (f *byFlag) who(sys *system) string {
	if f.By != "" {
		return f.By
	}
	return whoSays(sys)
}

// decide keeps what the flags say of the calls of a run that wait.
func (f *settleFlags) decide(ctx context.Context, j *journal, id, by string) error {
	ws, err := j.Pending(j.scoped(ctx), id)
	if err != nil {
		return j.failed(id, err)
	}
	open := waitingCalls(ws)
	if len(open) == 0 {
		return fail(statusFailed, fmt.Errorf("no call of run %s waits for an answer", id), j.command("runs", "show", id))
	}
	words, err := f.words(open)
	if err != nil {
		return err
	}
	switch err := j.Decide(j.scoped(ctx), id, decisions(open, words, by)...); {
	case errors.Is(err, durable.ErrExpired):
		return fail(statusFailed, err, j.command("runs", "resume", id)+" asks anew")
	case errors.Is(err, store.ErrConflict):
		return fail(statusFailed, err, "somebody was faster; "+j.command("runs", "show", id))
	case err != nil:
		return err
	}
	return nil
}

// settle keeps answers, and says what is left to do. done is what happened, for the person: approved.
func settle(sys *system, f *storeFlags, at *engineFlags, name, by, done string, flags settleFlags) error {
	if err := at.check(f); err != nil {
		return err
	}
	if at.away() {
		return remote{&at.clusterFlags}.settle(sys, name, by, done, flags)
	}
	ctx := context.Background()
	j, r, err := f.openRun(ctx, sys, name)
	if err != nil {
		return err
	}
	defer j.Close()
	if err := flags.decide(ctx, j, r.ID, by); err != nil {
		return withoutFlags(err)
	}
	left, err := j.Pending(j.scoped(ctx), r.ID)
	if err != nil {
		return err
	}
	id := visible(r.ID)
	next := "go on: " + j.command("runs", "resume", id)
	if len(left) > 0 {
		next = fmt.Sprintf("%s: %s", waits(len(left)), keys(waitingCalls(left)))
	}
	_, err = fmt.Fprintf(sys.out, "%s in %s; %s\n", done, id, visible(next))
	return err
}

type runsApproveCmd struct {
	runArg
	Keys []string `arg:"" name:"KEY[=ARGS]" sep:"none" help:"The call's key, as pawl inbox shows it, or all; ARGS are JSON to run it with in place of the model's, which the model is told."`
	byFlag
	storeFlags
	engineFlags
}

// Run lets calls run.
func (c *runsApproveCmd) Run(sys *system) error {
	return settle(sys, &c.storeFlags, &c.engineFlags, c.ID, c.who(sys), "approved", settleFlags{Approve: c.Keys})
}

type runsDenyCmd struct {
	runArg
	Keys []string `arg:"" name:"KEY[=REASON]" sep:"none" help:"The call's key, as pawl inbox shows it, or all; the model is told the reason."`
	byFlag
	storeFlags
	engineFlags
}

// Run refuses calls.
func (c *runsDenyCmd) Run(sys *system) error {
	return settle(sys, &c.storeFlags, &c.engineFlags, c.ID, c.who(sys), "denied", settleFlags{Deny: c.Keys})
}

type runsAnswerCmd struct {
	runArg
	Answers []string `arg:"" name:"KEY=TEXT" sep:"none" help:"The call's key, as pawl inbox shows it, and its result."`
	byFlag
	storeFlags
	engineFlags
}

// Run gives calls their results.
func (c *runsAnswerCmd) Run(sys *system) error {
	answers := map[string]string{}
	for _, a := range c.Answers {
		key, text, ok := strings.Cut(a, "=")
		if !ok {
			return usage(key+"=TEXT", "%s: the result is missing", key)
		}
		answers[key] = text
	}
	return settle(sys, &c.storeFlags, &c.engineFlags, c.ID, c.who(sys), "answered", settleFlags{Answer: answers})
}
