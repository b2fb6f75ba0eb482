package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

const (
	// The largest file that can be edited, and the largest that an edit can produce. An edit holds
	// the file in memory several times.
	editBytes = 8 << 20
	mostEdits = 100
)

type editArgs struct {
	Path   string  `json:"path"`
	Edits  []edit  `json:"edits"`
	Expect *string `json:"expect"` // nil means any content
}

type edit struct {
	Old string `json:"old"`
	New string `json:"new"`
	All bool   `json:"all"`
}

type editData struct {
	Path     string   `json:"path"`
	Replaced int      `json:"replaced"` // places replaced by all edits together
	Bytes    int      `json:"bytes"`
	SHA256   string   `json:"sha256"`
	Changes  []change `json:"changes"` // the first changes
}

func (s *Set) edit(ctx context.Context, a editArgs) (llm.ToolResult, error) {
	name, err := clean(a.Path)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if len(a.Edits) == 0 || len(a.Edits) > mostEdits {
		return llm.ToolResult{}, toolrun.Refuse("edits has %d edits; give 1 to %d", len(a.Edits), mostEdits)
	}
	old, err := s.whole(ctx, name)
	if err != nil {
		return llm.ToolResult{}, err
	}
	sum := hexSum(old)
	if a.Expect != nil && !strings.EqualFold(sum, *a.Expect) {
		return llm.ToolResult{}, toolrun.Refuse("not edited: %q has changed; its SHA-256 is %s, expect says %s. "+
			"Read it again before you edit", name, sum, strings.ToLower(*a.Expect))
	}

	e, err := edited(ctx, name, old, a.Edits)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if bytes.Equal(e.text, old) {
		return llm.ToolResult{}, toolrun.Refuse("not edited: the edits undo each other, so %s would not change",
			shown(name))
	}

	// Another program may write between the read and the rename. The content is then not the
	// content that the edits refer to.
	_, _, err = s.writeFile(ctx, a.Path, &sum, func(w io.Writer) error {
		_, err := w.Write(e.text)
		return err
	})
	if err != nil {
		return llm.ToolResult{}, err
	}
	return e.result()
}

// whole reads the whole text file name.
func (s *Set) whole(ctx context.Context, name string) ([]byte, error) {
	f, info, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tooLarge := func(size int64) error {
		return toolrun.Refuse("%s is too large to be edited: it has %d bytes, and %d is the most; "+
			"file_search and file_read show parts of it", shown(name), size, editBytes)
	}
	if info.Size() > editBytes {
		return nil, tooLarge(info.Size())
	}

	var b bytes.Buffer
	b.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := b.ReadFrom(io.LimitReader(reader{ctx, f}, editBytes+1)); err != nil {
		return nil, s.explain(name, err)
	}
	if b.Len() > editBytes { // the file grows, or it is a kernel file that reports no size
		return nil, tooLarge(int64(b.Len()))
	}

	text := b.Bytes()
	if kind := binary(text[:min(len(text), headBytes)]); kind != "" {
		return nil, toolrun.Refuse("%s is not text: it is %s, %d bytes", shown(name), kind, len(text))
	}
	// The head decides about most files. A NUL further down is found only here, and an edit would
	// be shown without it.
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return nil, toolrun.Refuse("%s is not text: line %d has NUL bytes; %d bytes in all",
			shown(name), lineOf(text, i), len(text))
	}
	return text, nil
}

// An editor applies edits to a text, one after the other.
type editor struct {
	name     string
	text     []byte
	crlf     bool // every line ends in \r\n
	replaced int
	changes  []change
	more     int // changes that are not recorded
	shown    int // bytes of the recorded changes
}

// edited applies edits to the text of name.
func edited(ctx context.Context, name string, old []byte, edits []edit) (*editor, error) {
	e := &editor{name: name, text: old, crlf: crlf(old)}
	for i, one := range edits {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := e.apply(i, one); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// apply applies one edit; index is its position in the call. The model's text has \n where the file
// may have \r\n.
func (e *editor) apply(index int, one edit) error {
	old := []byte(one.Old)
	fresh := []byte(one.New)
	if e.crlf || e.onlyCRLF(old) {
		old = toCRLF(old)
		fresh = toCRLF(fresh)
	}

	where := fmt.Sprintf("edits[%d]", index)
	// The size is known before the text is built: one edit can multiply a file.
	n := bytes.Count(e.text, old)
	size := len(e.text) + n*(len(fresh)-len(old))
	switch {
	case one.Old == "":
		return toolrun.Refuse("%s: old is empty; give the text to replace", where)
	case one.Old == one.New:
		return toolrun.Refuse("%s: old and new are the same, so nothing would change; nothing was changed", where)
	case n == 0:
		return toolrun.Refuse("%s: %s has no text like old; nothing was changed. %s",
			where, shown(e.name), e.near(one, index))
	case n > 1 && !one.All:
		return toolrun.Refuse("%s: old stands in %s %d times (lines %s); nothing was changed. Take in lines around it "+
			"until it is the only one, or set all to change every place", where, shown(e.name), n, e.lines(old, 10))
	case size > editBytes:
		return toolrun.Refuse("%s: %s would have %d bytes, and %d is the most that can be edited; nothing was changed",
			where, shown(e.name), size, editBytes)
	}
	e.replace(old, fresh)
	return nil
}

// onlyCRLF reports whether the text has old with \r\n and not with \n, in a file with both line
// endings.
func (e *editor) onlyCRLF(old []byte) bool {
	with := toCRLF(old)
	return len(with) > len(old) && !bytes.Contains(e.text, old) && bytes.Contains(e.text, with)
}

// replace replaces every old by fresh and records the changed lines.
func (e *editor) replace(old, fresh []byte) {
	var out bytes.Buffer
	out.Grow(len(e.text) + len(fresh))
	at := 0
	line := 1 // line is the line number at the end of out
	for {
		i := bytes.Index(e.text[at:], old)
		if i < 0 {
			break
		}
		i += at
		out.Write(e.text[at:i])
		line += bytes.Count(e.text[at:i], []byte("\n"))
		e.note(line, i, i+len(old), fresh)
		out.Write(fresh)
		line += bytes.Count(fresh, []byte("\n"))
		// Behind the new text: it may contain the old one.
		at = i + len(old)
		e.replaced++
	}
	out.Write(e.text[at:])
	e.text = out.Bytes()
}

// lines returns the numbers of the lines in which old begins, at most the first most of them.
func (e *editor) lines(old []byte, most int) string {
	var list []string
	at := 0
	line := 1
	for {
		i := bytes.Index(e.text[at:], old)
		if i < 0 {
			return strings.Join(list, ", ")
		}
		if len(list) == most {
			return strings.Join(list, ", ") + ", …"
		}
		line += bytes.Count(e.text[at:at+i], []byte("\n"))
		list = append(list, fmt.Sprint(line))
		line += bytes.Count(old, []byte("\n"))
		at += i + len(old)
	}
}

func (e *editor) result() (llm.ToolResult, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Edited %s: %d %s, %d bytes now\n", e.name, e.replaced,
		text.Plural(e.replaced, "place", "places"), len(e.text))
	for _, c := range e.changes {
		c.write(&b)
	}
	if e.more > 0 {
		fmt.Fprintf(&b, "[and %d more]\n", e.more)
	}
	return toolrun.Result(strings.TrimSuffix(b.String(), "\n"),
		editData{Path: e.name, Replaced: e.replaced, Bytes: len(e.text), SHA256: hexSum(e.text), Changes: e.changes})
}

// crlf reports whether every line of text ends in \r\n.
func crlf(text []byte) bool {
	n := bytes.Count(text, []byte("\n"))
	return n > 0 && n == bytes.Count(text, []byte("\r\n"))
}

// toCRLF returns text with \r inserted before each \n that has none.
func toCRLF(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
}

// lineOf returns the number of the line that contains byte i, counted from 1.
func lineOf(text []byte, i int) int { return 1 + bytes.Count(text[:i], []byte("\n")) }

// Preview is the effect that a call would have on a file, for the person who approves the call.
type Preview struct {
	Path          string // cleaned path
	Before, After string // Whole contents. After is empty for a file that is deleted.
	Exists        bool   // the file exists before the call
}

// Preview returns the effect that a call of file_write, file_edit or file_delete would have on its
// file now. It changes nothing. It returns nil for other calls. It returns an error if the effect
// is unknown: the call would fail as well, or the file is not text that can be shown.
func (s *Set) Preview(ctx context.Context, call llm.ToolCall) (*Preview, error) {
	if !slices.Contains([]string{"file_write", "file_edit", "file_delete"}, call.Name) {
		return nil, nil
	}
	var a struct {
		Path, Content string
		Edits         []edit
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return nil, err
	}

	p, err := s.before(ctx, a.Path)
	if err != nil {
		return nil, err
	}
	switch call.Name {
	case "file_write":
		p.After = a.Content
	case "file_edit":
		e, err := edited(ctx, p.Path, []byte(p.Before), a.Edits)
		if err != nil {
			return nil, err
		}
		p.After = string(e.text)
	}
	return p, nil
}

// before returns the current state of the file.
func (s *Set) before(ctx context.Context, asked string) (*Preview, error) {
	name, err := clean(asked)
	if err != nil {
		return nil, err
	}
	target, err := s.real(name)
	if err != nil {
		return nil, err
	}
	if err := s.guarded(name, target); err != nil {
		return nil, err
	}

	p := &Preview{Path: name}
	if _, err := s.root.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	p.Exists = true
	text, err := s.whole(ctx, name)
	p.Before = string(text)
	return p, err
}
