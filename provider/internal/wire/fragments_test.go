package wire_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// lettered is a Decoder of events with one letter and a string: text, reasoning, the name of a
// call, its arguments; "." for the end of a part, and "end".
type lettered struct {
	*wire.Emitter
	part int
	over bool
}

func (d *lettered) Event(data []byte) (err error) {
	if string(data) == "end" {
		d.over = true
		return nil
	}
	c := jsonscan.New(data[1:])
	switch data[0] {
	case 'T':
		d.part, err = d.BeginText(llm.Text{Text: c.String()})
	case 't':
		err = d.MoreText(d.part, c.String())
	case 'R':
		d.part, err = d.BeginReasoning(llm.Reasoning{Text: c.String()})
	case 'r':
		err = d.MoreReasoning(d.part, c.String())
	case 'C':
		d.part, err = d.BeginCall(llm.ToolCall{Name: c.String()})
	case 'a':
		err = d.MoreArgs(d.part, wire.Args(&c))
	case '.':
		err = d.Seal(d.part)
	case 'p':
		err = d.Part(llm.Text{Text: c.String()})
	}
	return err
}

func (d *lettered) Over() bool         { return d.over }
func (d *lettered) Stated() bool       { return false }
func (d *lettered) End() error         { return d.Finish(llm.FinishReasonStop) }
func (d *lettered) Whole([]byte) error { return nil }

// told formats a delta as a word.
func told(d llm.Delta) string {
	s := fmt.Sprint(d.Index)
	switch p := d.Part.(type) {
	case llm.Text:
		s += " text " + p.Text
	case llm.Reasoning:
		s += " reasoning " + p.Text
	case llm.ToolCall:
		s += " call " + p.Name + string(p.Args)
	}
	if d.Done {
		s += "."
	}
	return s + string(d.Finish)
}

// Fragments of one read are emitted as one delta, and the Emitter does not wait for the next read.
func TestFragmentsThatCameTogether(t *testing.T) {
	long := strings.Repeat("0123456789", 100)
	for name, c := range map[string]struct {
		pieces []string // events, divided by spaces
		want   []string // deltas after each piece, divided by |
	}{
		"one piece":       {[]string{`T"a" t"b" t"c" . C"f" a"{" a"}" . end`}, []string{"0 text abc.|1 call f{}.|0stop"}},
		"each by itself":  {[]string{`T"a"`, `t"b"`, `.`, `C"f"`, `a"{"`, `a"}"`, `.`, `end`}, []string{"0 text a", "0 text b", "0.", "1 call f", "1 call {", "1 call }", "1.", "0stop"}},
		"the end is late": {[]string{`R"a" r"b"`, `r"c" . T"d" end`}, []string{"0 reasoning ab", "0 reasoning c.|1 text d|0stop"}},
		"with escapes":    {[]string{`C"f" a"{\"a\"" a":\"\\n\"}" . end`}, []string{`0 call f{"a":"\n"}.|0stop`}},
		"empty ones":      {[]string{`C"f" a"" a"{}" a"" . end`}, []string{"0 call f{}.|0stop"}},
		"another between": {[]string{`T"a" p"x" t"b" end`}, []string{"0 text a|1 text x.|0 text b|0stop"}},
		"long ones":       {[]string{`C"f" a"` + long + `" a"` + long + `" . end`}, []string{"0 call f" + long + long + ".|0stop"}},
	} {
		t.Run(name, func(t *testing.T) {
			pr, pw := io.Pipe()
			var got []string
			begun := make(chan struct{})
			out := &wire.Emitter{Tools: wire.NoTools}
			out.Yield = func(d llm.Delta, err error) bool {
				got = append(got, told(d))
				return true
			}
			go func() {
				defer close(begun)
				defer pw.Close()
				for _, piece := range c.pieces {
					var b strings.Builder
					for _, ev := range strings.Fields(piece) {
						b.WriteString("data: " + ev + "\n\n")
					}
					io.WriteString(pw, b.String())
				}
			}()
			// The content of a piece is emitted when the next piece is requested.
			var after []string
			waits := readerFunc(func(p []byte) (int, error) {
				if got != nil {
					after, got = append(after, strings.Join(got, "|")), nil
				}
				return pr.Read(p)
			})
			if err := wire.Read("test", waits, -1, false, &lettered{Emitter: out}); err != nil {
				t.Fatal(err)
			}
			pr.Close()
			<-begun
			if got != nil {
				after = append(after, strings.Join(got, "|"))
			}
			if d := cmp.Diff(c.want, after); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Content before a fault is emitted before the fault, and a consumer that has stopped receives
// nothing more.
func TestFragmentsBeforeTheEnd(t *testing.T) {
	body := func() io.Reader {
		return io.MultiReader(strings.NewReader("data: T\"a\"\n\ndata: t\"b\"\n\n"), iotestErr{})
	}
	var got []string
	out := &wire.Emitter{Tools: wire.NoTools, Yield: func(d llm.Delta,
		_ error) bool {
		got = append(got, told(d))
		return true
	}}
	err := wire.Read("test", body(), -1, false, &lettered{Emitter: out})
	if d := cmp.Diff([]string{"0 text ab"}, got); d != "" || err == nil || !strings.Contains(err.Error(), "broke off") {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	n := 0
	out = &wire.Emitter{Tools: wire.NoTools, Yield: func(llm.Delta, error) bool { n++; return false }}
	if err := wire.Read("test", body(), -1, false, &lettered{Emitter: out}); err != wire.ErrStopped || n != 1 {
		t.Errorf("error %v after %d deltas", err, n)
	}
}

type iotestErr struct{}

func (iotestErr) Read([]byte) (int, error) { return 0, fmt.Errorf("the line is cut") }
