package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Lock is the content of a tools.lock: the definitions of tools that were reviewed and accepted. A
// server in the lock offers these tools and no others. A server that is not in the lock is not
// restricted. A Lock must not be changed while a Client uses it.
type Lock struct {
	Version int               `json:"version"` // always 1
	Servers map[string]Pinned `json:"servers"` // by name
}

// Pinned is the entry of a server in a Lock.
type Pinned struct {
	// Identity is the command line or the URL. A different one under the same name is a different
	// server.
	Identity string       `json:"identity"`
	Tools    []Definition `json:"tools"` // sorted by name
}

// ReadLock reads the file at path. A missing file is an empty lock.
func ReadLock(path string) (*Lock, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lock{Version: 1}, nil
	}
	if err != nil {
		return nil, err
	}
	l := new(Lock)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(l); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if l.Version != 1 {
		return nil, fmt.Errorf("%s: version %d is not known; want 1", path, l.Version)
	}
	return l, nil
}

// Write writes the lock to path, completely or not at all.
func (l *Lock) Write(path string) error {
	l.Version = 1
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(l); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tools.lock-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Drift is a difference between a lock and the server's current definitions.
type Drift struct {
	Tool string `json:"tool"` // empty means the server itself
	What string `json:"what"` // "added", "removed", "changed" or "moved"
	Text string `json:"text"` // what changed, for a person
}

// Has reports whether the server is in the lock.
func (l *Lock) Has(s Server) bool {
	if l == nil {
		return false
	}
	_, ok := l.Servers[s.Name]
	return ok
}

// Diff returns the differences between the server's definitions and the pinned ones, sorted by
// tool. Nil means no difference.
func (l *Lock) Diff(s Server, listed []Listed) []Drift {
	p, ok := l.Servers[s.Name]
	if !ok {
		return []Drift{{What: "added", Text: fmt.Sprintf("the server is not in the lock, with %d tools", len(listed))}}
	}

	var out []Drift
	if p.Identity != s.identity() {
		out = append(out, Drift{What: "moved", Text: fmt.Sprintf("was %s, is %s", p.Identity, s.identity())})
	}

	there := map[string]bool{}
	for _, t := range listed {
		there[t.Name] = true
		if was := p.tool(t.Name); was == nil {
			out = append(out, Drift{t.Name, "added", clip(show(t.Description), 200)})
		} else if text := changed(was, &t.Definition); text != "" {
			out = append(out, Drift{t.Name, "changed", text})
		}
	}
	for _, was := range p.Tools {
		if !there[was.Name] {
			out = append(out, Drift{was.Name, "removed", ""})
		}
	}

	slices.SortStableFunc(out, func(a, b Drift) int { return strings.Compare(a.Tool, b.Tool) })
	return out
}

// Accept pins the current definitions of the named tools. Without names, it pins all tools and the
// server itself. A named tool that is not listed is removed. A quarantined tool is never pinned.
// The error names a tool that is neither listed nor pinned.
func (l *Lock) Accept(s Server, listed []Listed, names ...string) error {
	p := l.Servers[s.Name]
	p.Identity = s.identity()
	if len(names) == 0 {
		p.Tools = nil
		for _, t := range listed {
			names = append(names, t.Name)
		}
	}

	tools := map[string]Definition{}
	for _, d := range p.Tools {
		tools[d.Name] = d
	}
	for _, n := range names {
		i := slices.IndexFunc(listed, func(t Listed) bool { return t.Name == n })
		_, was := tools[n]
		switch {
		case i < 0 && !was:
			return fmt.Errorf("the server %s has no tool %q", s.Name, n)
		case i < 0:
			delete(tools, n)
		case listed[i].Verdict != Quarantined:
			tools[n] = listed[i].Definition
		}
	}

	p.Tools = []Definition{}
	for _, n := range slices.Sorted(maps.Keys(tools)) {
		p.Tools = append(p.Tools, tools[n])
	}
	if l.Servers == nil {
		l.Servers = map[string]Pinned{}
	}
	l.Servers[s.Name] = p
	return nil
}

// compare checks a tool against the lock. It returns "" if the lock has no entry for the server,
// Accepted if the tool is unchanged, and otherwise Drifted with the reason.
func (l *Lock) compare(s *Server, d *Definition) (Verdict, string) {
	if l == nil {
		return "", ""
	}
	p, ok := l.Servers[s.Name]
	switch {
	case !ok:
		return "", ""
	// Another program has the name now, whose tools no person has accepted.
	case p.Identity != s.identity():
		return Drifted, fmt.Sprintf("the lock is for another server: %s", p.Identity)
	}
	was := p.tool(d.Name)
	if was == nil {
		return Drifted, "it is new since the server was accepted"
	}
	if text := changed(was, d); text != "" {
		return Drifted, text
	}
	return Accepted, ""
}

func (p *Pinned) tool(name string) *Definition {
	for i := range p.Tools {
		if p.Tools[i].Name == name {
			return &p.Tools[i]
		}
	}
	return nil
}

// changed describes the differences between two definitions of a tool. Empty means no difference.
func changed(was, is *Definition) string {
	if was.Digest() == is.Digest() {
		return ""
	}
	var out []string
	part := func(what string, a, b []byte) {
		if !bytes.Equal(a, b) {
			x, y := apart(string(a), string(b))
			out = append(out, fmt.Sprintf("%s: %q is now %q", what, show(x), show(y)))
		}
	}
	part("title", []byte(was.Title), []byte(is.Title))
	part("description", []byte(was.Description), []byte(is.Description))
	part("input schema", canonical(was.Input), canonical(is.Input))
	part("output schema", canonical(was.Output), canonical(is.Output))
	part("annotations", canonical(was.Annotations), canonical(is.Annotations))
	return strings.Join(out, "; ")
}

// apart returns the parts in which two texts differ, with some context.
func apart(a, b string) (string, string) {
	const around, most = 20, 160
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	j := 0
	for j < len(a)-i && j < len(b)-i && a[len(a)-1-j] == b[len(b)-1-j] {
		j++
	}
	cut := func(s string) string {
		from := max(0, i-around)
		to := min(len(s), len(s)-j+around)
		return strings.ToValidUTF8(clip(s[from:to], most), "")
	}
	return cut(a), cut(b)
}
