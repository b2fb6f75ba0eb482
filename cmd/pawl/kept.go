package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/nearest"
	"github.com/pawl-go/pawl/store"
)

// Commands about what is kept in the database share these.

// everything goes through all parts of a list. id names an entry, as pages do.
func everything[T any](part func(store.Page) ([]T, error), id func(T) string) ([]T, error) {
	all := []T{}
	for page := (store.Page{Limit: 1000}); ; page.After = id(all[len(all)-1]) {
		more, err := part(page)
		if err != nil {
			return nil, err
		}
		if all = append(all, more...); len(more) < page.Limit {
			return all, nil
		}
	}
}

// unknown says that nothing is kept as id, and what may have been meant.
func unknown(what, id string, known []string, hint string) error {
	text := fmt.Sprintf("there is no %s %s", what, id)
	if near := nearest.Word(id, known); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	return fail(statusFailed, fmt.Errorf("%s", text), hint)
}

// names are the IDs of a list.
func names[T any](all []T, id func(T) string) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = id(v)
	}
	return out
}

// moment is a time for a person: in a zone, to the minute; "" for none.
func moment(t time.Time, zone string) string {
	if t.IsZero() {
		return ""
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc = time.UTC
	}
	return t.In(loc).Format("2006-01-02 15:04 MST")
}

// beginning is the first line of a text that has something in it, for a list.
func beginning(text string, width int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line(first, width)
}

// deleted removes entries one after another. The first that is not there is told when the rest is gone.
func deleted(w io.Writer, ids []string, remove, missing func(id string) error) error {
	var first error
	for _, id := range ids {
		switch err := remove(id); {
		case errors.Is(err, store.ErrNotFound):
			if first == nil {
				first = missing(id)
			}
		case err != nil:
			return usage("", "%v", err)
		default:
			fmt.Fprintf(w, "deleted %s\n", visible(strings.TrimSpace(id)))
		}
	}
	return first
}
