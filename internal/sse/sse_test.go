package sse_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/sse"
	"github.com/pawl-go/pawl/internal/test/corpora"
)

type event struct {
	Event string `json:"event,omitempty"`
	Data  string `json:"data"`
	ID    string `json:"id,omitempty"`
	Retry int64  `json:"-"`
	Cut   bool   `json:"-"`
}

func read(t testing.TB, r io.Reader) ([]event, error) {
	t.Helper()
	var out []event
	x := sse.NewReader(r)
	for {
		e, err := x.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, event{string(e.Type), string(e.Data), string(e.ID), int64(e.Retry / time.Millisecond),
			e.Unended})
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []event
	}{
		{"one line", "data: a\n\n", []event{{Data: "a"}}},
		{"line ends", "data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\r\n\n", []event{{Data: "a"}, {Data: "b"}, {Data: "c"}, {Data: "d"}}},
		{"many lines", "data: a\ndata:b\r\ndata\rdata:  c\n\n", []event{{Data: "a\nb\n\n c"}}},
		{"many lines between others", "data: a\nevent: x\n: remark\ndata: b\n\n", []event{{Event: "x", Data: "a\nb"}}},
		{"byte order mark", "\ufeffdata: a\n\n", []event{{Data: "a"}}},
		{"a second byte order mark is part of the field's name", "\ufeff\ufeffdata: a\n\ndata: b\n\n", []event{{Data: "b"}}},
		{"comments and unknown fields", ": hi\n\nfoo: bar\ndata: a\n: OPENROUTER PROCESSING\n\n", []event{{Data: "a"}}},
		{"an event without data is none", "event: x\n\ndata: a\n\n", []event{{Data: "a"}}},
		{"empty data is data", "data\n\ndata:\ndata:\n\n", []event{{Data: ""}, {Data: "\n"}}},
		{"the id stays", "id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []event{{Data: "a", ID: "7"}, {Data: "b", ID: "7"}, {Data: "c"}}},
		{"an id with NUL is no id", "id: 1\x002\ndata: a\n\n", []event{{Data: "a"}}},
		{"retry", "retry: 1500\ndata: a\n\nretry: 1.5\ndata: b\n\n", []event{{Data: "a", Retry: 1500}, {Data: "b"}}},
		{"cut before the blank line", "data: a\n\ndata: b\n", []event{{Data: "a"}, {Data: "b", Cut: true}}},
		{"cut in a line", "data: a\n\ndata: b\ndata: c", []event{{Data: "a"}, {Data: "b\nc", Cut: true}}},
		{"nothing", "", nil},
		{"only a comment", ": a", nil},
	} {
		for kind, r := range map[string]io.Reader{
			"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
			"with EOF": iotest.DataErrReader(strings.NewReader(c.in)), "in halves": iotest.HalfReader(strings.NewReader(c.in)),
		} {
			got, err := read(t, r)
			if diff := cmp.Diff(got, c.want); diff != "" || err != nil {
				t.Errorf("%s, %s: %q: error %v, got - want +\n%s", c.name, kind, c.in, err, diff)
			}
		}
	}
}

func TestErrorOfTheStreamIsReported(t *testing.T) {
	broken := errors.New("connection reset")
	got, err := read(t, io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if err != broken || len(got) != 1 {
		t.Errorf("got %v, error %v; want one event, then the stream's error: an event that an error cut is not offered", got, err)
	}
}

func TestLargeEvents(t *testing.T) {
	for _, size := range []int{4 << 10, 64<<10 + 7, 1 << 20} {
		big := strings.Repeat("x", size)
		in := "data: small\n\ndata: " + big + "\ndata: " + big + "\n\ndata: after\n\n"
		got, err := read(t, strings.NewReader(in))
		want := []event{{Data: "small"}, {Data: big + "\n" + big}, {Data: "after"}}
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%d bytes: %d events, error %v; want 3 equal ones", size, len(got), err)
		}
	}
	for _, in := range []string{"data: " + strings.Repeat("x", 3000),
		strings.Repeat("data: "+strings.Repeat("x", 100)+"\n", 30), ":" + strings.Repeat("x", 3000)} {
		x := sse.NewReader(iotest.OneByteReader(strings.NewReader(in)))
		x.Max = 2000
		if _, err := x.Next(); !errors.Is(err, sse.ErrTooLong) {
			t.Errorf("%.20q… over the bound: error %v, want ErrTooLong", in, err)
		}
	}
}

func TestResetKeepsTheBuffer(t *testing.T) {
	x := sse.NewReader(nil)
	in := []byte("id: 1\nevent: t\ndata: hello\n\n")
	src := bytes.NewReader(in)
	n := testing.AllocsPerRun(100, func() {
		src.Reset(in)
		x.Reset(src)
		for {
			if _, err := x.Next(); err != nil {
				break
			}
		}
	})
	if n > 0 {
		t.Errorf("%v allocations a stream, want 0", n)
	}
}

func TestCorpus(t *testing.T) {
	cases := corpora.Lines[struct {
		Name   string
		Chunks [][]byte `json:"chunks_b64"`
		Events []event
		Retry  *int64
	}](t, "sse/dev.jsonl")
	for _, c := range cases {
		var rs []io.Reader
		for _, b := range c.Chunks {
			rs = append(rs, bytes.NewReader(b))
		}
		all := bytes.Join(c.Chunks, nil)
		for _, r := range []io.Reader{io.MultiReader(rs...), bytes.NewReader(all),
			iotest.OneByteReader(bytes.NewReader(all))} {
			got, err := read(t, r)
			if err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			var kept []event
			for _, e := range got {
				if !e.Cut { // the corpus follows the standard
					e.Retry = 0
					kept = append(kept, e)
				}
			}
			for i, w := range c.Events {
				if w.Event == "message" {
					c.Events[i].Event = ""
				}
			}
			if len(kept)+len(c.Events) > 0 && !cmp.Equal(kept, c.Events) {
				t.Errorf("%s: got - want +\n%.2000s", c.Name, cmp.Diff(kept, c.Events))
			}
		}
	}
	t.Logf("%d cases", len(cases))
}

// slow reads a stream as the standard describes, line by line, without the Reader's optimizations.
func slow(in string) (out []event) {
	in = strings.TrimPrefix(in, "\ufeff")
	in = strings.ReplaceAll(in, "\r\n", "\n")
	in = strings.ReplaceAll(in, "\r", "\n")
	var e event
	var data []string
	id, ended := "", strings.HasSuffix(in, "\n")
	lines := strings.Split(in, "\n")
	if ended {
		lines = lines[:len(lines)-1]
	}
	for _, l := range lines {
		if l == "" {
			if data != nil {
				e.Data, e.ID = strings.Join(data, "\n"), id
				out = append(out, e)
			}
			e, data = event{}, nil
			continue
		}
		name, value, _ := strings.Cut(l, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			data = append(data, value)
		case "event":
			e.Event = value
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		}
	}
	if data != nil {
		e.Data, e.ID, e.Cut = strings.Join(data, "\n"), id, true
		out = append(out, e)
	}
	return out
}

func FuzzReader(f *testing.F) {
	f.Add("data: a\r\ndata: b\rid: 1\n\nevent: x\ndata:\n\n", 3)
	f.Add("\ufeffdata\r\n\r\n: c\rdata: y", 1)
	f.Fuzz(func(t *testing.T, in string, chunk int) {
		want := slow(in)
		for _, size := range []int{len(in) + 1, max(1, min(chunk, len(in)))} {
			var rs []io.Reader
			for rest := in; rest != ""; rest = rest[min(size, len(rest)):] {
				rs = append(rs, strings.NewReader(rest[:min(size, len(rest))]))
			}
			got, err := read(t, io.MultiReader(rs...))
			for i := range got {
				got[i].Retry = 0
			}
			if err != nil || !cmp.Equal(got, want) {
				t.Errorf("%q by %d: error %v, got - want +\n%s", in, size, err, cmp.Diff(got, want))
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	in := []byte(strings.Repeat("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"word\"}\n\n", 200))
	src := bytes.NewReader(in)
	x := sse.NewReader(nil)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(in)
		x.Reset(src)
		for {
			if _, err := x.Next(); err != nil {
				break
			}
		}
	}
}

func TestPeek(t *testing.T) {
	for in, want := range map[string]string{" \n\n  {\"a\":1}": "{\"a\":1}", "data: a\n\n": "data: a", "\r\n \t": "", "": ""} {
		x := sse.NewReader(iotest.HalfReader(strings.NewReader(in)))
		head, err := x.Peek()
		if got := strings.TrimSpace(string(head)); !strings.HasPrefix(want, got) || want != "" && got == "" ||
			err != nil && err != io.EOF {
			t.Errorf("Peek of %q = %q, %v; want the start of %q", in, head, err, want)
		}
	}
	x := sse.NewReader(strings.NewReader("\n\ndata: a\n\n"))
	if _, err := x.Peek(); err != nil {
		t.Fatal(err)
	}
	if e, err := x.Next(); err != nil || string(e.Data) != "a" {
		t.Errorf("after Peek: %q, %v; want the first event", e.Data, err)
	}
}

func Example() {
	r := sse.NewReader(strings.NewReader(": keep-alive\n\nevent: greeting\ndata: hello\ndata: world\n\n"))
	for {
		ev, err := r.Next()
		if err == io.EOF {
			break
		}
		fmt.Printf("%s: %q\n", ev.Type, ev.Data)
	}
	// Output: greeting: "hello\nworld"
}
