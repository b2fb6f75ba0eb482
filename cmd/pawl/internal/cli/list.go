package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/store"
)

// List prints entries: as JSON, or as a table in which row returns the cells of an entry. The
// columns of head are separated by "|".
func List[T any](w io.Writer, asJSON bool, all []T, head string, row func(T) []any) error {
	if asJSON {
		return PrintJSON(w, all)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ReplaceAll(head, "|", "\t"))
	for _, v := range all {
		for i, cell := range row(v) {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// Fields prints the names and values of one entry, a line each. Empty values are left out.
func Fields(w io.Writer, fields [][2]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		if f[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", f[0], f[1])
		}
	}
	return t.Flush()
}

// JSONLines returns an encoder that writes values to w, one a line.
func JSONLines(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// PrintJSON writes v to w as indented JSON.
func PrintJSON(w io.Writer, v any) error {
	e := JSONLines(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Pretty returns indented JSON. Text that is not JSON stays unchanged.
func Pretty(b json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}

// Everything reads all pages of a list. id returns the ID of an entry, at which the next page
// starts.
func Everything[T any](part func(store.Page) ([]T, error), id func(T) string) ([]T, error) {
	all := []T{}
	for page := (store.Page{Limit: 1000}); ; page.After = id(all[len(all)-1]) {
		more, err := part(page)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
		if len(more) < page.Limit {
			return all, nil
		}
	}
}

// Unknown returns the failure for an ID that is not stored. It suggests the most similar known ID.
func Unknown(what, id string, known []string, hint string) error {
	return Fail(StatusFailed, fmt.Errorf("there is no %s %s%s", what, id, Meant(id, known)), hint)
}

// Meant returns the end of an error text that names the known word most similar to word. It is
// empty if none is similar.
func Meant(word string, known []string) string {
	if near := nearest.Word(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// Names returns the IDs of a list.
func Names[T any](all []T, id func(T) string) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = id(v)
	}
	return out
}

// Moment formats a time in a zone, to the minute. The zero time is "". An unknown zone means UTC.
func Moment(t time.Time, zone string) string {
	if t.IsZero() {
		return ""
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc = time.UTC
	}
	return t.In(loc).Format("2006-01-02 15:04 MST")
}

// Beginning returns the first line of text that is not blank, cut to width columns.
func Beginning(text string, width int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return Line(first, width)
}

// Deleted removes entries and reports each on w. A missing entry does not stop it: the error for
// the first missing entry is returned at the end.
func Deleted(w io.Writer, ids []string, remove, missing func(id string) error) error {
	var first error
	for _, id := range ids {
		err := remove(id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			// The others are deleted all the same, and the status says that one was missing.
			if first == nil {
				first = missing(id)
			}
		case err != nil:
			return Usage("", "%v", err)
		default:
			fmt.Fprintf(w, "deleted %s\n", Visible(strings.TrimSpace(id)))
		}
	}
	return first
}
