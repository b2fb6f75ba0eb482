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
	"time"

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
	trimmed := bytes.TrimSpace(b)
	switch {
	case len(trimmed) == 0:
		return nil, usage(hint, "--messages %s: the file is empty", path)
	case trimmed[0] == '[':
		err = decode(b, &from.Messages)
	case trimmed[0] == '{' && repeated(b) != "":
		err = fmt.Errorf("%q is there twice", repeated(b))
	case string(trimmed) == "null":
		err = errors.New("got null where an object or a list belongs")
	default:
		err = decode(b, from)
	}
	if err != nil {
		text := jsonFault(b, err)
		if strings.HasPrefix(text, "[") {
			text = "messages" + text
		}
		return nil, usage(hint, "--messages %s: %s", path, text)
	}
	for i := range from.Messages { // the file is indented for people; what the model is sent of it is not
		for j, p := range from.Messages[i].Parts {
			if c, ok := p.(pawl.ToolCall); ok {
				c.Args = compact(c.Args)
				from.Messages[i].Parts[j] = c
			}
		}
	}
	return from, nil
}

// compact returns JSON without its spacing; what is no JSON stays as it is.
func compact(b json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
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
		return fmt.Errorf("save %s: %s", path, cause(err))
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("save %s: %s", path, cause(err))
		}
	}()
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}

// savable reports why nothing could be saved at the path that a flag names, before a run that would be lost.
func savable(flag, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return usage("name a file", "%s %s: this is a directory", flag, path)
	case err == nil && !info.Mode().IsRegular():
		return nil // a pipe, /dev/stdout: what it takes is seen when it is written
	}
	dir := filepath.Dir(path)
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		dir = filepath.Dir(resolved)
	}
	if info, err := os.Stat(dir); err != nil {
		return usage("make the directory first", "%s %s", flag, plain(err))
	} else if !info.IsDir() {
		return usage("name a file in a directory", "%s %s: %s is not a directory", flag, path, dir)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return usage("name a file in a directory that can be written to", "%s %s: %v", flag, path, cause(err))
	}
	f.Close()
	return os.Remove(f.Name())
}

// openCall is a call without a result, under the key by which a person names it.
type openCall struct {
	Key  pawl.Key        `json:"key"`
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	Why  string          `json:"why,omitempty"`

	Digest  string    `json:"digest,omitempty"` // of the question: an answer is bound to it
	Expires time.Time `json:"expires,omitzero"` // after that a yes comes too late, and the call asks anew

	Outcome pawl.Outcome `json:"outcome,omitempty"` // unknown: it was interrupted and may have happened; "": it was not begun

	waiting *pawl.Waiting // the question it waits with; nil: it was handed back, not asked about
}

// question returns the question that the call is pending with. nil means that the call was handed back, and no question is asked.
func (o *openCall) question() *pawl.Waiting { return o.waiting }

// waitingCalls are open calls by their questions: those of calls inside of others, too.
func waitingCalls(ws []pawl.Waiting) []openCall {
	open := make([]openCall, len(ws))
	for i := range ws {
		w := &ws[i]
		open[i] = openCall{Key: w.Key, ID: w.Call.ID, Name: w.Call.Name, Args: w.Call.Args}
		open[i].ask(w)
	}
	return open
}

// ask notes the question that the call waits with.
func (o *openCall) ask(w *pawl.Waiting) {
	if !json.Valid(o.Args) {
		o.Args, _ = json.Marshal(string(o.Args))
	}
	o.Key, o.Why, o.Digest, o.Expires, o.waiting = w.Key, w.Why, w.Digest, w.Expires, w
	if w.Outcome == pawl.OutcomeUnknown {
		o.Outcome = w.Outcome
	}
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
					o.ask(&res.Pending[i])
				}
			}
			open = append(open, o)
		}
	}
	return open
}
