package hostile

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Short names an API in a table.
func Short(api string) string {
	switch api {
	case "openai-chat":
		return "chat"
	case "openai-responses":
		return "responses"
	case "anthropic-messages":
		return "anthropic"
	}
	return api
}

// Cell is the result of a Runtime for one Behaviour on one API in a word: "ok", "fail", "-" if the
// API cannot express it, or the only mode that failed ("stream").
func (r *Row) Cell(api string) string {
	played := 0
	failed := ""
	for _, s := range r.Scores {
		if s.API != api || s.Absent {
			continue
		}
		played++
		switch {
		case len(s.Wrong) == 0:
		case failed != "":
			failed = "fail"
		default:
			failed = s.Mode
		}
	}
	switch {
	case played == 0:
		return "-"
	case failed == "":
		return "ok"
	case played == 1:
		return "fail"
	}
	return failed
}

// apisOf are the APIs of a table, in order.
func apisOf(rows []Row) []string {
	var all []string
	for _, r := range rows {
		for _, s := range r.Scores {
			if !slices.Contains(all, s.API) {
				all = append(all, s.API)
			}
		}
	}
	return all
}

// Count returns the number of plays and the number of failed plays.
func Count(rows []Row) (plays, failed int) {
	for _, r := range rows {
		for _, s := range r.Scores {
			if !s.Absent {
				plays++
			}
			if len(s.Wrong) > 0 {
				failed++
			}
		}
	}
	return plays, failed
}

// WriteHead and WriteRow print a table for a terminal, line by line.
func WriteHead(w io.Writer, apis []string) {
	fmt.Fprintf(w, "%-29s", "BEHAVIOUR")
	for _, api := range apis {
		fmt.Fprintf(w, " %-9s", strings.ToUpper(Short(api)))
	}
	fmt.Fprintln(w, " THE MODEL …")
}

// WriteRow prints one row: the model's action if all passed, else the first fault.
func WriteRow(w io.Writer, r *Row, apis []string) {
	fmt.Fprintf(w, "%-29s", r.ID)
	for _, api := range apis {
		fmt.Fprintf(w, " %-9s", r.Cell(api))
	}
	if why := r.Why(); why != "" {
		fmt.Fprintf(w, " FAILED: %s\n", why)
		return
	}
	fmt.Fprintf(w, " %s\n", r.Title)
}

// Page returns docs/hostile.md, the results of Runtimes. The first is pawl, and the second is the
// control, a hand-written loop. The control's column shows its first failure.
func Page(all []Behaviour, pawl, control []Row) string {
	var b strings.Builder
	plays, failed := Count(pawl)
	lost := 0
	for i := range control {
		if !control[i].Passed() {
			lost++
		}
	}
	apis := apisOf(pawl)
	fmt.Fprintf(&b, `<!-- Made by the test of pawltest/hostile. Change it there, then: make docs -->

# Models that behave badly

%d behaviours of models, and of the servers before them, played to pawl over four wires, streamed and whole: %d plays, %d of
them failed. Each stands for a demand of users of such runtimes, or for a known trap. The list at the end names them.
`+"`go run ./pawltest/hostile/cmd/hostile run`"+` plays them on your machine from a checkout, in less than a minute, without a
key and without a network; `+"`--help`"+` describes the program.

A behaviour passes if all of this holds:

- Exactly the expected calls ran, with exactly the expected arguments.
- The model received what it needs to continue (a field's name, the names of the tools) and no internals of the program.
- The run stopped for the expected reason.
- Every request held a conversation that the API accepts, with the task in it and the same tools in the same bytes.

The control is a loop written by hand over one of the four APIs: it asks, executes the calls, and asks again. It shows that
the kit can fail: of %d behaviours it fails %d.

## Another runtime

The same program offers the behaviours on a port. Point a client of any of the four APIs at one of them, offer the
tools that it names, and ask for the verdict:

`+"```sh"+`
go run ./pawltest/hostile/cmd/hostile serve --addr 127.0.0.1:4010
curl -s http://127.0.0.1:4010/b/unknown-tool            # what it does, the tools to define, the expected outcome
OPENAI_BASE_URL=http://127.0.0.1:4010/b/unknown-tool/v1 your-agent "Task unknown-tool: use the tools, then answer."
curl -s http://127.0.0.1:4010/b/unknown-tool/verdict    # {"requests":2,"valid":true,"results":[…],"wrong":[],"passed":true}
`+"```"+`

A tool of the kit returns a text that begins with its receipt, `+"`ran NAME ARGUMENTS`"+`, so that a result on
the wire shows whether the call was executed, and with which arguments. `+"`/index.json`"+` has all of it as data. In Go,
`+"`hostile.Play`"+` takes any function as a runtime, and sees more than the wire shows.

## The table

A cell is ok, fail, the one mode that failed (stream, whole), or - where the API cannot express the behaviour.

| behaviour | the model … | stands for |`, len(all), plays, failed, len(control), lost)
	for _, api := range apis {
		b.WriteString(" " + Short(api) + " |")
	}
	b.WriteString(" control |\n|---|---|---|")
	b.WriteString(strings.Repeat("---|", len(apis)+1) + "\n")
	for i := range pawl {
		r := &pawl[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s |", r.ID, cellText(r.Title), strings.Join(r.Meets, " "))
		for _, api := range apis {
			b.WriteString(" " + r.Cell(api) + " |")
		}
		why := ""
		for k := range control {
			if control[k].ID != r.ID {
				continue
			}
			why = "ok"
			if !control[k].Passed() {
				why = "**fails:** " + cellText(reason(&control[k]))
			}
		}
		b.WriteString(" " + why + " |\n")
	}
	b.WriteString("\n## What they stand for\n\nT1.0 are the rows of a table of nine tested runtimes, D are frequent demands of users, IA and OA are traps found in older runtimes.\n\n| id | |\n|---|---|\n")
	for _, d := range Demands() {
		fmt.Fprintf(&b, "| %s | %s |\n", d.ID, cellText(d.Says))
	}
	return b.String()
}

// reason returns the reason why a row failed, in words that are the same each time.
func reason(r *Row) string {
	for _, s := range r.Scores {
		if len(s.Wrong) == 0 {
			continue
		}
		parts := strings.Split(s.Wrong[0], ": ")
		text := parts[0]
		switch {
		case strings.HasSuffix(text, "at most may"):
			return "too many tools ran at once"
		case len(parts) > 1 && (strings.HasPrefix(text, "call ") || strings.HasPrefix(text, "request ")):
			return clip(text+": "+parts[1], 90)
		default:
			return clip(text, 90)
		}
	}
	return ""
}

func cellText(s string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", ">", "&gt;", "\n", " ", "__", "\\_\\_").Replace(s)
}
