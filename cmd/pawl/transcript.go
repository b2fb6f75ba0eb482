package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
)

// loadTranscript reads what --save wrote, or a list of messages. It returns the run to go on from, and messages that hold decisions apart.
func loadTranscript(path string) (*pawl.Result, error) {
	b, err := readFile("--messages", path)
	if err != nil {
		return nil, err
	}
	const hint = `what --save wrote, or a list like [{"role":"user","parts":[{"type":"text","text":"…"}]}]`
	from := new(pawl.Result)
	switch trimmed := bytes.TrimSpace(b); {
	case len(trimmed) == 0:
		return nil, usage(hint, "--messages %s: the file is empty", path)
	case trimmed[0] == '[':
		err = json.Unmarshal(b, &from.Messages)
	default:
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		err = d.Decode(from)
	}
	if err != nil {
		return nil, usage(hint, "--messages %s: %s", path, jsonFault(b, err))
	}
	return from, nil
}

// saveTranscript writes res to path, atomically: the file has its old content or its new one.
func saveTranscript(path string, res *pawl.Result) error {
	b, err := json.Marshal(res)
	if err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	out.WriteByte('\n')
	return writeFile(path, out.Bytes())
}

// writeFile replaces the file at path. Only its owner may read a new one: conversations are private.
func writeFile(path string, content []byte) (err error) {
	mode := os.FileMode(0o600)
	target := path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		target = resolved
	}
	if info, err := os.Stat(target); err == nil {
		if !info.Mode().IsRegular() { // a pipe, /dev/stdout: nothing to replace
			return os.WriteFile(target, content, mode)
		}
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return fmt.Errorf("save %s", plain(err))
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("save %s: %w", path, err)
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}

// savable reports why nothing could be saved at path, before a run that would be lost.
func savable(path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usage("name a file", "--save %s: this is a directory", path)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return usage("make the directory first", "--save %s", plain(err))
	} else if !info.IsDir() {
		return usage("", "--save %s: %s is not a directory", path, filepath.Dir(path))
	}
	return nil
}

// openCall is a call without a result, under the key by which a person names it.
type openCall struct {
	Key  pawl.Key        `json:"key"`
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	Why  string          `json:"why,omitempty"`

	waiting *pawl.Waiting // the question it waits with; nil: it was handed back, not asked about
}

// openCalls returns the calls of res that have no result, in call order.
func openCalls(res *pawl.Result) []openCall {
	replies, last := 0, pawl.Message{}
	for _, m := range res.Messages {
		if m.Role == pawl.RoleAssistant {
			replies++
			last = m
		}
	}
	var open []openCall
	for _, c := range res.Calls() {
		for place, d := range last.Calls() {
			if c.ID != d.ID {
				continue
			}
			o := openCall{Key: pawl.Key("run/" + strconv.Itoa(replies) + "/" + strconv.Itoa(place)), ID: c.ID, Name: c.Name, Args: c.Args}
			if !json.Valid(o.Args) {
				o.Args, _ = json.Marshal(string(c.Args))
			}
			for i, w := range res.Pending {
				if w.Call.ID == c.ID {
					o.Key, o.Why, o.waiting = w.Key, w.Why, &res.Pending[i]
				}
			}
			open = append(open, o)
		}
	}
	return open
}

// settleFlags say what becomes of calls that an earlier run left open.
type settleFlags struct {
	Approve []string          `sep:"none" placeholder:"KEY" help:"Let the call with this key run, or all that wait for it. With --messages."`
	Deny    []string          `sep:"none" placeholder:"KEY[=REASON]" help:"Refuse the call, or all; the model is told the reason. With --messages."`
	Answer  map[string]string `mapsep:"none" placeholder:"KEY=TEXT" help:"Give the call's result. With --messages."`
}

func (f *settleFlags) empty() bool { return len(f.Approve)+len(f.Deny)+len(f.Answer) == 0 }

// messages makes the messages that settle the open calls of from as the flags say.
func (f *settleFlags) messages(from *pawl.Result) ([]pawl.Message, error) {
	if f.empty() {
		return nil, nil
	}
	open := openCalls(from)
	if len(open) == 0 {
		return nil, usage("", "no call of this transcript is open, so there is nothing to approve, deny or answer")
	}
	said := map[pawl.Key]string{}
	var decisions []pawl.Decision
	var results []pawl.ToolResult
	each := func(flag, key string, all bool, do func(o openCall) error) error {
		found := false
		for _, o := range open {
			if string(o.Key) != key && o.ID != key && !(all && key == "all" && o.waiting != nil && !o.waiting.Passive) {
				continue
			}
			found = true
			if said[o.Key] != "" {
				return usage("say one thing of a call", "%s %s: %s says something of it already", flag, key, said[o.Key])
			}
			said[o.Key] = flag
			if err := do(o); err != nil {
				return err
			}
		}
		if !found {
			return usage("open: "+keys(open), "%s %s: no open call has this key", flag, key)
		}
		return nil
	}
	const by = "the command line"
	for _, key := range f.Approve {
		err := each("--approve", key, true, func(o openCall) error {
			switch {
			case o.waiting == nil:
				return usage("a run without --approve goes on with it", "--approve %s: the call was handed back, and waits for nobody's word", key)
			case o.waiting.Passive:
				return usage("--answer "+key+"=TEXT gives its result", "--approve %s: %s has nothing to run", key, o.Name)
			}
			decisions = append(decisions, o.waiting.Approve(by))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, text := range f.Deny {
		key, reason, _ := strings.Cut(text, "=")
		err := each("--deny", key, true, func(o openCall) error {
			if o.waiting != nil {
				decisions = append(decisions, o.waiting.Deny(by, reason))
				return nil
			}
			r := pawl.ErrorResult(strings.TrimSpace("Denied: " + reason))
			r.CallID = o.ID
			results = append(results, r)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, o := range open { // in call order, whatever the order of the map
		for key, text := range f.Answer {
			if key != string(o.Key) && key != o.ID {
				continue
			}
			err := each("--answer", key, false, func(o openCall) error {
				r := pawl.TextResult(text)
				r.CallID = o.ID
				results = append(results, r)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	for key := range f.Answer {
		if err := known(open, key); err != nil {
			return nil, err
		}
	}
	var msgs []pawl.Message
	if len(results) > 0 {
		msgs = append(msgs, pawl.Results(results...))
	}
	if len(decisions) > 0 {
		msgs = append(msgs, pawl.Decide(decisions...))
	}
	return msgs, nil
}

func known(open []openCall, key string) error {
	for _, o := range open {
		if key == string(o.Key) || key == o.ID {
			return nil
		}
	}
	return usage("open: "+keys(open), "--answer %s: no open call has this key", key)
}

func keys(open []openCall) string {
	out := make([]string, len(open))
	for i, o := range open {
		out[i] = fmt.Sprintf("%s (%s)", o.Key, o.Name)
	}
	return strings.Join(out, ", ")
}
