package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/protect"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

const (
	searchMatches = 100      // default of limit
	mostMatches   = 1000     // maximum of limit
	searchBytes   = 30 << 10 // limit of the text, so that the last line still fits into a result
	mostContext   = 20
)

type searchArgs struct {
	Pattern    string        `json:"pattern,omitempty"`
	Path       string        `json:"path,omitempty"`
	Literal    bool          `json:"literal,omitempty"`
	IgnoreCase bool          `json:"ignore_case,omitempty"`
	Include    []string      `json:"include,omitempty"`
	Exclude    []string      `json:"exclude,omitempty"`
	Context    toolrun.Whole `json:"context,omitempty"`
	Limit      toolrun.Whole `json:"limit,omitempty"`
	After      string        `json:"after,omitempty"`
	Line       toolrun.Whole `json:"line,omitempty"`
}

type searchData struct {
	Matches []match     `json:"matches"`
	Files   int         `json:"files"`            // files searched or, without a pattern, found
	Binary  int         `json:"binary,omitempty"` // skipped because they are binary
	Unread  int         `json:"unread,omitempty"` // files that could not be read
	Next    *searchArgs `json:"next,omitempty"`
}

// match is a line that matches, or a file found by its name.
type match struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text,omitempty"` // shortened if it is long
}

// errFull ends a search whose answer has reached its limit.
var errFull = errors.New("the answer is full")

func (s *Set) search(ctx context.Context, a searchArgs) (llm.ToolResult, error) {
	q, err := s.newSearch(a)
	if err != nil {
		return llm.ToolResult{}, err
	}
	if err := s.reachable(q.base, q.sight); err != nil {
		return llm.ToolResult{}, err
	}
	info, err := s.root.Stat(q.base)
	switch {
	case err != nil:
		return llm.ToolResult{}, s.explain(q.base, err)
	case info.IsDir():
		err = q.walk(ctx, q.base)
	default:
		if err = regular(q.base, info); err == nil {
			// A file that the model names is searched although the globs exclude it, and its error
			// is returned.
			q.alone = true
			err = q.visit(ctx, q.base)
		}
	}
	if err != nil && !errors.Is(err, errFull) {
		return llm.ToolResult{}, s.explain(q.base, err)
	}
	return q.result()
}

// newSearch checks the arguments.
func (s *Set) newSearch(a searchArgs) (*searching, error) {
	base, err := clean(a.Path)
	if err != nil {
		return nil, err
	}
	q := &searching{
		set:     s,
		sight:   s.places.Sight(),
		args:    a,
		base:    base,
		limit:   searchMatches,
		context: min(max(int(a.Context), 0), mostContext),
	}
	if a.Limit > 0 {
		q.limit = min(int(a.Limit), mostMatches)
	}
	if a.Pattern == "" && len(a.Include) == 0 {
		return nil, toolrun.Refuse("give pattern, what to look for in the files, or include, the names of files to find, " +
			"such as [\"*.go\"]")
	}

	if a.Pattern != "" {
		q.matcher, err = newMatcher(a.Pattern, a.Literal, a.IgnoreCase)
		if err != nil {
			return nil, err
		}
	}
	q.include, err = newGlobs("include", a.Include)
	if err != nil {
		return nil, err
	}
	q.exclude, err = newGlobs("exclude", a.Exclude)
	if err != nil {
		return nil, err
	}
	if a.After != "" {
		q.from, err = startAfter(base, a.After)
	}
	return q, err
}

// startAfter returns the path at which a search below base continues.
func startAfter(base, after string) (string, error) {
	from, err := clean(after)
	if err != nil {
		return "", err
	}
	if base != "." && from != base && !strings.HasPrefix(from, base+"/") {
		return "", toolrun.Refuse("after: %q is not below path %q; give the path that the last answer ended with",
			after, base)
	}
	return from, nil
}

// searching is the state of one search.
type searching struct {
	set              *Set
	sight            *protect.Sight
	args             searchArgs
	base             string
	alone            bool // base is a file
	from             string
	matcher          *regexp.Regexp // nil means that files are searched by name
	include, exclude globs
	limit, context   int

	text    strings.Builder
	data    searchData
	binary  []string // the first few
	lossy   bool     // some bytes are not UTF-8
	heading string   // file of the current matches
	shown   int      // last line shown of that file
}

// visit searches the file name.
func (q *searching) visit(ctx context.Context, name string) error {
	if !q.alone && !q.includes(name) {
		return nil
	}
	if q.matcher == nil {
		if name == q.from {
			return nil
		}
		return q.found(name)
	}

	// A search continues at the file where the last answer ended, behind the last line that it
	// showed.
	from := 0
	if name == q.from {
		from = int(q.args.Line)
		if from <= 0 {
			return nil // it was the last file of the previous answer, which showed it whole
		}
	}
	f, _, err := q.set.openSeen(name, q.sight)
	if err != nil {
		if q.alone {
			return err
		}
		q.data.Unread++ // the file was deleted in the meantime, or reading it is not permitted
		return nil
	}
	defer f.Close()

	q.data.Files++
	err = q.lines(ctx, name, f, from)
	if isBinary, ok := errors.AsType[*binaryError](err); ok {
		if q.alone {
			return toolrun.Refuse("%s is not text: it is %s", shown(name), isBinary.kind)
		}
		// It was counted before it was known to be binary.
		q.data.Files--
		q.data.Binary++
		if len(q.binary) < 3 {
			q.binary = append(q.binary, plain(name))
		}
		return nil
	}
	return err
}

// includes reports whether the patterns of the call include a file below base.
func (q *searching) includes(name string) bool {
	below := strings.TrimPrefix(name, q.base+"/")
	if q.exclude.fit(below) {
		return false
	}
	return len(q.include) == 0 || q.include.fit(below)
}

// found adds a file that was found by its name.
func (q *searching) found(name string) error {
	line := plain(name) + "\n"
	if len(q.data.Matches) == q.limit || q.text.Len()+len(line) > searchBytes {
		return q.full(q.data.Matches[len(q.data.Matches)-1].Path, 0)
	}
	q.text.WriteString(line)
	q.data.Files++
	q.data.Matches = append(q.data.Matches, match{Path: name})
	return nil
}

// full records where the next page starts.
func (q *searching) full(after string, line int) error {
	next := q.args
	next.After = after
	next.Line = toolrun.Whole(line)
	q.data.Next = &next
	return errFull
}

func (q *searching) result() (llm.ToolResult, error) {
	if q.data.Matches == nil {
		q.data.Matches = []match{}
	}
	q.text.WriteString("[" + q.note() + "]")
	return toolrun.Result(q.text.String(), q.data)
}

// note returns the last line of an answer: what was found, what was skipped, and how to continue.
func (q *searching) note() string {
	var b strings.Builder
	n := len(q.data.Matches)
	files := fmt.Sprintf("%d %s", q.data.Files, text.Plural(q.data.Files, "file", "files"))
	switch {
	case q.matcher == nil && n == 0:
		b.WriteString("no file has such a name")
	case q.matcher == nil:
		fmt.Fprintf(&b, "%d %s", n, text.Plural(n, "file", "files"))
	case n == 0:
		fmt.Fprintf(&b, "no line matches, in %s", files)
	default:
		fmt.Fprintf(&b, "%d %s in %s", n, text.Plural(n, "line matches", "lines match"), files)
	}

	if n := q.data.Binary; n > 0 {
		fmt.Fprintf(&b, "; %d binary %s passed over (%s", n, text.Plural(n, "file was", "files were"),
			strings.Join(q.binary, ", "))
		if n > len(q.binary) {
			b.WriteString(", …")
		}
		b.WriteString(")")
	}
	if n := q.data.Unread; n > 0 {
		fmt.Fprintf(&b, "; %d %s not be read", n, text.Plural(n, "file could", "files could"))
	}
	if q.lossy {
		b.WriteString("; some bytes are not UTF-8 and stand here as \uFFFD")
	}

	if q.data.Next != nil {
		next, _ := jsonform.Marshal(q.data.Next)
		fmt.Fprintf(&b, "; there are more, continue with %s", next)
	}
	return b.String()
}

// globs are patterns of paths.
type globs []string

// deep finds a ** that is no part of its own, as in src/**.go, which means src/**/*.go.
var deep = regexp.MustCompile(`\*\*([^/])`)

// newGlobs returns the patterns. One without a slash matches the last part of a path.
func newGlobs(where string, patterns []string) (globs, error) {
	var all globs
	for i, p := range patterns {
		glob := deep.ReplaceAllString(strings.TrimPrefix(p, "./"), "**/*$1")
		fault := ""
		switch {
		case strings.HasPrefix(glob, "/"), glob == "..", strings.HasPrefix(glob, "../"):
			fault = "it is to be relative to path"
		case !doublestar.ValidatePattern(glob):
			fault = "a [ or a { is never closed"
		case strings.HasSuffix(glob, "/"):
			glob += "**"
		case !strings.Contains(glob, "/"):
			glob = "**/" + glob
		}
		if fault != "" {
			return nil, toolrun.Refuse("%s[%d]: %q is no glob: %s; such are \"*.go\", \"src/**/*_test.go\", "+
				"\"*.{yml,yaml}\"",
				where, i, p, fault)
		}
		all = append(all, glob)
	}
	return all, nil
}

// fit reports whether one of the patterns matches the path name, which is relative to the base of
// the search.
func (g globs) fit(name string) bool {
	return slices.ContainsFunc(g, func(glob string) bool { return doublestar.MatchUnvalidated(glob, name) })
}

// passed lists directories that are skipped unless path leads into them.
var passed = map[string]bool{".git": true, ".hg": true, ".svn": true}

// walk visits each regular file below dir, starting at the path q.from, in name order, directory by
// directory. It follows no links, and skips hidden places and directories that cannot be read,
// except the base, where it began.
func (q *searching) walk(ctx context.Context, dir string) error {
	if strings.Count(dir, "/")+2 > maxDepth {
		return nil // no tool accepts deeper paths
	}

	below, ok := strings.CutPrefix(q.from, dir+"/")
	if !ok && dir == "." {
		below = q.from
		ok = true
	}
	first := "" // the name in dir to begin at
	if ok {
		first, _, _ = strings.Cut(below, "/")
	}

	all, err := q.set.entries(dir, q.sight)
	if err != nil && dir == q.base {
		return err
	}
	for _, d := range all {
		err := ctx.Err()
		name := path.Join(dir, d.Name())
		mode := d.Type()

		switch {
		case err != nil || d.Name() < first:
		// A link to a directory has neither type, so that no circle of links is followed.
		case mode.IsDir() && !passed[d.Name()] && !q.exclude.fit(strings.TrimPrefix(name, q.base+"/")):
			err = q.walk(ctx, name)
		case mode.IsRegular():
			err = q.visit(ctx, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
