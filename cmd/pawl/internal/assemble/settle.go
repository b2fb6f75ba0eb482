package assemble

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/durable/journal"
	"github.com/pawl-go/pawl/llm"
)

// WhoSays returns the name of the person at the command line, for decisions.
func WhoSays(sys *cli.System) string { return cmp.Or(sys.Env("USER"), "the command line") }

// Decide sends the decisions of the flags on the pending calls ws of a run and on its answered
// calls that have not ended. It returns the calls that are still pending. command returns command
// lines for hints.
func (f *SettleFlags) Decide(ws, answered []pawl.PendingCall, id, by string, command func(...string) string,
	send func(...llm.Decision) error) (left []OpenCall, err error) {
	open := WaitingCalls(slices.Concat(ws, answered))
	for i := range answered {
		open[len(ws)+i].answered = true
	}
	if len(open) == 0 {
		return nil, cli.Fail(cli.StatusFailed, fmt.Errorf("no call of run %s is pending", cli.Visible(id)),
			command("runs", "show", id))
	}
	words, err := f.words(open)
	if err != nil {
		return nil, err
	}

	var ds []llm.Decision
	for i, o := range open {
		if words[i].flag == "" {
			if !o.answered {
				left = append(left, o)
			}
			continue
		}
		d := o.decision(words[i], by)
		d.Identity = Identity()
		ds = append(ds, d)
	}

	// Together, so that a mistake in one of them decides none.
	return left, send(ds...)
}

// Decide decides pending calls of a run by the flags. It returns the calls that are still pending.
func (j *Journal) Decide(ctx context.Context, id, by string, f SettleFlags) ([]OpenCall, error) {
	ws, answered, err := j.Questions(j.Scoped(ctx), id)
	if err != nil {
		return nil, j.Failed(id, err)
	}
	return f.Decide(ws, answered, id, by, j.Command, func(ds ...llm.Decision) error {
		err := j.Engine.Decide(j.Scoped(ctx), id, ds...)
		if errors.As(err, new(*journal.AnswerError)) {
			return cli.Fail(cli.StatusFailed, err, j.Command("runs", "show", id))
		}
		return err
	})
}

// SettleFlags settle the calls that an earlier run left open.
type SettleFlags struct {
	Approve []string `group:"settle" sep:"none" placeholder:"KEY[=ARGS]" help:"@settle_approve"`
	Deny    []string `group:"settle" sep:"none" placeholder:"KEY[=REASON]" help:"@settle_deny"`

	// Answer holds the result of each call, by its key.
	Answer map[string]string `group:"settle" mapsep:"none" placeholder:"KEY=TEXT" help:"@answer"`
}

// Empty reports whether no flag is given.
func (f *SettleFlags) Empty() bool { return len(f.Approve)+len(f.Deny)+len(f.Answer) == 0 }

// word is the decision of a flag on an open call.
type word struct {
	flag string // the flag; "" means no decision
	text string // the reason, the result, or changed arguments
}

// All names every open call that no other flag decides.
const All = "all"

// Settle returns the messages that settle the open calls of from, and the calls that are still
// pending.
func (f *SettleFlags) Settle(from *pawl.Result) (msgs []llm.Message, waiting []OpenCall, err error) {
	open := OpenCalls(from)
	if f.Empty() {
		return nil, slices.DeleteFunc(open, func(o OpenCall) bool { return o.waiting == nil }), nil
	}
	if len(open) == 0 {
		return nil, nil, cli.Usage("to resume it, send a message: pawl run --messages FILE … \"what next\"",
			"no call of this transcript is open, so there is nothing to approve, deny or answer")
	}
	words, err := f.words(open)
	if err != nil {
		return nil, nil, err
	}
	msgs, waiting = settled(open, words)
	return msgs, waiting, nil
}

// words returns the decision of the flags on each of the open calls.
func (f *SettleFlags) words(open []OpenCall) ([]word, error) {
	s := &saying{open: open, words: make([]word, len(open))}
	// The flags that name a call come first: those for all calls decide on the rest.
	var errs []error
	for _, text := range f.Approve {
		if key, args, _ := strings.Cut(text, "="); key != All || args != "" {
			errs = append(errs, s.approve(key, args))
		}
	}
	for _, text := range f.Deny {
		if key, reason, _ := strings.Cut(text, "="); key != All {
			errs = append(errs, s.say("--deny", key, reason))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.Answer)) {
		errs = append(errs, s.say("--answer", key, f.Answer[key]))
	}

	if slices.Contains(f.Approve, All) {
		hint := "open: " + Keys(open) + "; --answer KEY=TEXT sets a result"
		errs = append(errs, s.rest("--approve", "", mayRun, hint))
	}
	for _, text := range f.Deny {
		if key, reason, _ := strings.Cut(text, "="); key == All {
			hint := "give one flag for each call; open: " + Keys(open)
			errs = append(errs, s.rest("--deny", reason, func(OpenCall) bool { return true }, hint))
		}
	}
	return s.words, cmp.Or(errs...)
}

// saying is what the flags say about the open calls.
type saying struct {
	open  []OpenCall
	words []word // of each open call
}

// find returns the index of the open call that a flag names by its key or ID.
func (s *saying) find(flag, key string) (int, error) {
	i := slices.IndexFunc(s.open, func(o OpenCall) bool { return string(o.Key) == key || o.ID == key })
	switch {
	case i < 0:
		return 0, cli.Usage("open: "+Keys(s.open), "%s %s: no open call has this key", flag, key)
	case s.words[i].flag != "":
		return 0, cli.Usage("give one flag for each call", "%s %s: %s already settles this call", flag, key,
			s.words[i].flag)
	}
	return i, nil
}

// say records the decision of a flag on one call.
func (s *saying) say(flag, key, text string) error {
	i, err := s.find(flag, key)
	if err != nil {
		return err
	}
	s.words[i] = word{flag, text}
	return nil
}

// approve records that a call may run, with changed arguments if args is not empty.
func (s *saying) approve(key, args string) error {
	i, err := s.find("--approve", key)
	if err != nil {
		return err
	}
	o := &s.open[i]
	switch {
	case o.waiting == nil:
		return cli.Usage("resume the run without --approve",
			"--approve %s: the call was returned to the caller and needs no approval", key)
	case args != "" && !json.Valid([]byte(args)):
		return cli.Usage("--approve "+key+`='{"name": "value"}'`,
			"--approve %s: the arguments are not JSON: %s", key, args)
	case o.waiting.Passive:
		return cli.Usage("--answer "+key+"=TEXT sets its result",
			"--approve %s: %s is a passive tool, which pawl does not execute", key, o.Name)
	}
	s.words[i] = word{"--approve", args}
	return nil
}

// rest records the decision of a flag on the calls that takes accepts and no other flag names.
func (s *saying) rest(flag, text string, takes func(OpenCall) bool, hint string) error {
	found := false
	for i, o := range s.open {
		if s.words[i].flag == "" && !o.answered && takes(o) {
			s.words[i] = word{flag, text}
			found = true
		}
	}
	if !found {
		return cli.Usage(hint, "%s all: no open call is left for this flag", flag)
	}
	return nil
}

// mayRun reports whether an approval of all calls covers o. It does not repeat a call that may have
// happened.
func mayRun(o OpenCall) bool {
	return o.waiting != nil && !o.waiting.Passive && o.waiting.Outcome == pawl.OutcomePending
}

// decision returns the decision of w on a pending call.
func (o *OpenCall) decision(w word, by string) llm.Decision {
	switch {
	case w.flag == "--deny":
		return o.waiting.Deny(by, w.text)
	case w.flag == "--answer":
		return o.waiting.Answer(by, llm.TextResult(w.text))
	case w.text != "":
		return o.waiting.Edit(by, json.RawMessage(w.text))
	}
	return o.waiting.Approve(by)
}

// Identity returns Decision.Identity for the user of the operating system. By is a name that the
// person states.
func Identity() string {
	if u, err := user.Current(); err == nil {
		return fmt.Sprintf("os %s(%s)", u.Username, u.Uid)
	}
	return ""
}

// settled returns the messages for words, in call order, and the calls that are still pending.
func settled(open []OpenCall, words []word) (msgs []llm.Message, waiting []OpenCall) {
	const by = "the command line"
	var decisions []llm.Decision
	var results []llm.ToolResult
	result := func(o OpenCall, r llm.ToolResult) {
		r.CallID = o.ID
		results = append(results, r)
	}
	for i, o := range open {
		w := words[i]
		switch {
		case w.flag == "--answer":
			result(o, llm.TextResult(w.text))
		case w.flag != "" && o.waiting != nil:
			decisions = append(decisions, o.decision(w, by))
		// A call that was returned to the caller has no pending state. Its denial is a result.
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
		msgs = append(msgs, llm.DecisionMessage(decisions...))
	}
	return msgs, waiting
}

// Wanted reports whether some of the open calls need an approval, a result, or an answer to whether
// they happened.
func Wanted(open []OpenCall) (approval, result, unknown bool) {
	for _, o := range open {
		w := o.waiting
		switch {
		case w != nil && w.Outcome == pawl.OutcomeUnknown:
			unknown = true
		case w != nil && w.Passive:
			result = true
		default:
			approval = true
		}
	}
	return approval, result, unknown
}

// Settling returns a hint with the flags that settle open calls.
func Settling(open []OpenCall) string {
	approve, answer, unknown := Wanted(open)
	switch {
	case unknown: // it is the hardest to answer, so its flags are named alone
		return ", and --answer KEY=TEXT for a call that happened, --approve KEY to run it again, or --deny KEY"
	case approve && answer:
		return ", and --approve KEY, --deny KEY or --answer KEY=TEXT for each call"
	case answer:
		return ", and --answer KEY=TEXT for each call"
	}
	return ", and --approve KEY or --deny KEY for each call; or --yes from the start"
}

// Keys lists the keys of open calls without an answer, with the names of their tools.
func Keys(open []OpenCall) string {
	var out []string
	for _, o := range open {
		if !o.answered {
			out = append(out, fmt.Sprintf("%s (%s)", o.Key, o.Name))
		}
	}
	return strings.Join(out, ", ")
}

// LoadTranscript reads a file that --save wrote, or a list of messages, and returns the result to
// resume from.
func LoadTranscript(path string) (*pawl.Result, error) {
	if path == "" {
		return new(pawl.Result), nil
	}
	b, err := cli.ReadFile("--messages", path)
	if err != nil {
		return nil, err
	}

	const hint = `a file of --save, or a list like [{"role":"user","parts":[{"type":"text","text":"…"}]}]`
	from := new(pawl.Result)
	trimmed := bytes.TrimSpace(b)
	switch {
	case len(trimmed) == 0:
		return nil, cli.Usage(hint, "--messages %s: the file is empty", path)
	case trimmed[0] == '[':
		err = cli.Decode(b, &from.Messages)
		from.Messages = llm.FromClient(from.Messages...) // written by hand, or by another program
	case trimmed[0] == '{' && cli.Repeated(b) != "":
		err = fmt.Errorf("%q is a duplicate", cli.Repeated(b))
	// null would decode as an empty conversation.
	case string(trimmed) == "null":
		err = errors.New("got null, want an object or a list")
	default:
		err = cli.Decode(b, from)
	}
	if err != nil {
		text := cli.JSONFault(b, err)
		if strings.HasPrefix(text, "[") {
			text = "messages" + text
		}
		return nil, cli.Usage(hint, "--messages %s: %s", path, text)
	}

	// The file is indented for people. The model gets its arguments as it wrote them, compact.
	for i := range from.Messages {
		for j, p := range from.Messages[i].Parts {
			if c, ok := p.(llm.ToolCall); ok {
				c.Args = compact(c.Args)
				from.Messages[i].Parts[j] = c
			}
		}
	}
	return from, nil
}

// compact returns JSON without white space. Text that is not JSON stays unchanged.
func compact(b json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}

// SaveTranscript writes res to path atomically. An empty path means no file.
func SaveTranscript(path string, res *pawl.Result) error {
	if path == "" {
		return nil
	}
	b, err := json.Marshal(res)
	if err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	out.WriteByte('\n')
	return cli.WriteFile(path, out.Bytes())
}

// OpenCall is a call without a result, with the key by which a person names it.
type OpenCall struct {
	Key  llm.Key         `json:"key"`
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	Why  string          `json:"why,omitempty"`

	// the digest of the pending call; a decision is bound to it
	Digest string `json:"digest,omitempty"`
	// unknown means that the call was interrupted and may have happened; "" means that it was not
	// started
	Outcome pawl.Outcome `json:"outcome,omitempty"`

	waiting  *pawl.PendingCall // nil means that the call was handed back to the caller
	answered bool              // an answer is stored
}

// Question returns the pending question of the call. nil means that the call was handed back to the
// caller, and there is no question.
func (o *OpenCall) Question() *pawl.PendingCall { return o.waiting }

// WaitingCalls returns pending calls as open calls, including nested calls.
func WaitingCalls(ws []pawl.PendingCall) []OpenCall {
	open := make([]OpenCall, len(ws))
	for i := range ws {
		w := &ws[i]
		open[i] = newOpenCall(w.Key, w.Call)
		open[i].ask(w)
	}
	return open
}

// newOpenCall returns a call. Arguments that are not JSON become a JSON string.
func newOpenCall(key llm.Key, c llm.ToolCall) OpenCall {
	if !json.Valid(c.Args) {
		c.Args, _ = json.Marshal(string(c.Args))
	}
	return OpenCall{Key: key, ID: c.ID, Name: c.Name, Args: c.Args}
}

// ask stores the pending question of the call.
func (o *OpenCall) ask(w *pawl.PendingCall) {
	o.Key = w.Key
	o.Why = w.Why
	o.Digest = w.Digest
	o.waiting = w
	if w.Outcome == pawl.OutcomeUnknown {
		o.Outcome = w.Outcome
	}
}

// OpenCalls returns the calls of res that have no result, in call order.
func OpenCalls(res *pawl.Result) []OpenCall {
	replies := 0
	last := llm.Message{}
	for _, m := range res.Messages {
		if m.Role == llm.RoleAssistant {
			replies++
			last = m
		}
	}

	// A key has the place of the call in its reply, where calls with results stand too.
	var open []OpenCall
	for _, c := range res.Calls() {
		for place, d := range last.Calls() {
			if c.ID != d.ID {
				continue
			}
			o := newOpenCall(llm.Key(fmt.Sprintf("run/%d/%d", replies, place)), c)
			for i, w := range res.Pending {
				if w.Call.ID == c.ID {
					o.ask(&res.Pending[i])
				}
			}
			open = append(open, o)
		}
	}
	return open
}
