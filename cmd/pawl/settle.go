package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// settleFlags say what becomes of calls that an earlier run left open.
type settleFlags struct {
	Approve []string          `group:"settle" sep:"none" placeholder:"KEY[=ARGS]" help:"Let the call with this key run, or all that wait for it; ARGS are JSON to run it with in place of the model's. With --messages."`
	Deny    []string          `group:"settle" sep:"none" placeholder:"KEY[=REASON]" help:"Refuse the call, or all; the model is told the reason. With --messages."`
	Answer  map[string]string `group:"settle" mapsep:"none" placeholder:"KEY=TEXT" help:"Give the call's result. With --messages."`
}

func (f *settleFlags) empty() bool { return len(f.Approve)+len(f.Deny)+len(f.Answer) == 0 }

// word is what was said of an open call.
type word struct {
	flag string // "": nothing yet
	text string // the reason, the result, or other arguments
}

// all stands for every open call of which nothing else was said.
const all = "all"

// messages makes the messages that settle the open calls of from as the flags say. The calls that still wait then are returned with
// them.
func (f *settleFlags) messages(from *pawl.Result) (msgs []llm.Message, waiting []openCall, err error) {
	open := openCalls(from)
	if f.empty() {
		return nil, asked(open), nil
	}
	if len(open) == 0 {
		return nil, nil, usage("a message goes on with it: pawl run --messages FILE … \"what next\"",
			"no call of this transcript is open, so there is nothing to approve, deny or answer")
	}
	words, err := f.words(open)
	if err != nil {
		return nil, nil, err
	}
	msgs, waiting = settled(open, words)
	return msgs, waiting, nil
}

// words are what the flags say of each of the open calls.
func (f *settleFlags) words(open []openCall) ([]word, error) {
	words := make([]word, len(open))
	say := func(flag, key, text string) error {
		i := slices.IndexFunc(open, func(o openCall) bool { return string(o.Key) == key || o.ID == key })
		switch {
		case i < 0:
			return usage("open: "+keys(open), "%s %s: no open call has this key", flag, key)
		case words[i].flag != "":
			return usage("say one thing of a call", "%s %s: %s says something of it already", flag, key, words[i].flag)
		case flag == "--approve" && open[i].waiting == nil:
			return usage("a run without --approve goes on with it", "--approve %s: the call was handed back, and waits for nobody's word", key)
		case flag == "--approve" && text != "" && !json.Valid([]byte(text)):
			return usage("--approve "+key+`='{"name": "value"}'`, "--approve %s: the arguments are no JSON: %s", key, text)
		case flag == "--approve" && open[i].waiting.Passive:
			return usage("--answer "+key+"=TEXT gives its result", "--approve %s: %s has nothing to run", key, open[i].Name)
		}
		words[i] = word{flag, text}
		return nil
	}
	rest := func(flag, text string, takes func(openCall) bool, hint string) error {
		found := false
		for i, o := range open {
			if words[i].flag == "" && takes(o) {
				words[i], found = word{flag, text}, true
			}
		}
		if !found {
			return usage(hint, "%s all: no open call is left that this could be about", flag)
		}
		return nil
	}
	var errs []error
	for _, text := range f.Approve {
		if key, args, _ := strings.Cut(text, "="); key != all || args != "" {
			errs = append(errs, say("--approve", key, args))
		}
	}
	for _, text := range f.Deny {
		if key, reason, _ := strings.Cut(text, "="); key != all {
			errs = append(errs, say("--deny", key, reason))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.Answer)) {
		errs = append(errs, say("--answer", key, f.Answer[key]))
	}
	if slices.Contains(f.Approve, all) {
		mayRun := func(o openCall) bool {
			return o.waiting != nil && !o.waiting.Passive && o.waiting.Outcome == pawl.OutcomePending // a yes to all is none to running again
		}
		errs = append(errs, rest("--approve", "", mayRun, "open: "+keys(open)+"; --answer KEY=TEXT gives a result"))
	}
	for _, text := range f.Deny {
		if key, reason, _ := strings.Cut(text, "="); key == all {
			errs = append(errs, rest("--deny", reason, func(openCall) bool { return true }, "say one thing of a call; open: "+keys(open)))
		}
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return words, nil
}

// decisions turns words into what by decides about calls that wait.
func decisions(open []openCall, words []word, by string) (ds []llm.Decision) {
	for i, o := range open {
		switch w := words[i]; {
		case w.flag == "--approve" && w.text != "":
			ds = append(ds, o.waiting.Edit(by, json.RawMessage(w.text)))
		case w.flag == "--approve":
			ds = append(ds, o.waiting.Approve(by))
		case w.flag == "--deny":
			ds = append(ds, o.waiting.Deny(by, w.text))
		case w.flag == "--answer":
			ds = append(ds, o.waiting.Answer(by, llm.TextResult(w.text)))
		}
	}
	return ds
}

// settled turns words into messages, in call order, and returns the calls that wait on.
func settled(open []openCall, words []word) (msgs []llm.Message, waiting []openCall) {
	const by = "the command line"
	var decisions []llm.Decision
	var results []llm.ToolResult
	result := func(o openCall, r llm.ToolResult) {
		r.CallID = o.ID
		results = append(results, r)
	}
	for i, o := range open {
		switch w := words[i]; {
		case w.flag == "--approve":
			d := o.waiting.Approve(by)
			if w.text != "" {
				d.Args = json.RawMessage(w.text)
			}
			decisions = append(decisions, d)
		case w.flag == "--answer":
			result(o, llm.TextResult(w.text))
		case w.flag == "--deny" && o.waiting != nil:
			decisions = append(decisions, o.waiting.Deny(by, w.text))
		case w.flag == "--deny":
			result(o, llm.ErrorResult(strings.TrimRight("Denied: "+w.text, ": ")))
		case o.waiting != nil:
			waiting = append(waiting, o)
		}
	}
	if len(results) > 0 {
		msgs = append(msgs, llm.Results(results...))
	}
	if len(decisions) > 0 {
		msgs = append(msgs, llm.Decide(decisions...))
	}
	return msgs, waiting
}

// asked returns the calls that wait for somebody's word; the others were handed back.
func asked(open []openCall) []openCall {
	return slices.DeleteFunc(slices.Clone(open), func(o openCall) bool { return o.waiting == nil })
}

// settling names the flags that settle open calls.
func settling(open []openCall) string {
	approve, answer := false, false
	for _, o := range open {
		if o.waiting != nil && o.waiting.Outcome == pawl.OutcomeUnknown {
			return ", and --answer KEY=TEXT for a call that happened, --approve KEY to run it again, or --deny KEY"
		}
		if o.waiting != nil && o.waiting.Passive {
			answer = true
		} else {
			approve = true
		}
	}
	switch {
	case approve && answer:
		return ", and --approve KEY, --deny KEY or --answer KEY=TEXT for each call"
	case answer:
		return ", and --answer KEY=TEXT for each call"
	}
	return ", and --approve KEY or --deny KEY for each call; or --yes from the start"
}

func keys(open []openCall) string {
	out := make([]string, len(open))
	for i, o := range open {
		out[i] = fmt.Sprintf("%s (%s)", o.Key, o.Name)
	}
	return strings.Join(out, ", ")
}
