package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

var rule = wire.MediaRule{
	Name:    "The API",
	Data:    []string{"image/png", "image/jpeg", "text/csv"},
	Links:   []string{"", "image/*"},
	Schemes: []string{"https://"},
	Files:   "file-",
}

const (
	pngBytes  = "\x89PNG\r\n\x1a\n1234"
	jpegBytes = "\xff\xd8\xff\xe0\x00\x10JFIF"
)

// A medium is taken with its usual type, or a text stands in its place.
func TestTake(t *testing.T) {
	media := func(mime, data string) llm.Media { return llm.Media{MIME: mime, Data: []byte(data)} }
	note := func(text string) llm.Text { return llm.Text{Text: "[" + text + "]"} }
	for _, c := range []struct {
		in   llm.Media
		want llm.Part
	}{
		{media("image/png", pngBytes), media("image/png", pngBytes)},
		{media("image/png", jpegBytes), media("image/jpeg", jpegBytes)},
		{media("image/jpg", jpegBytes), media("image/jpeg", jpegBytes)},
		{media("", pngBytes), media("image/png", pngBytes)},
		{llm.Media{URL: "data:image/png;base64,iVBORw0KGgoxMjM0"}, media("image/png", pngBytes)},
		{llm.Media{URL: "data:image/png;base64,*"}, note("a medium of no known type is not shown: its data: URI cannot be read")},
		{media("text/csv", "a,b"), media("text/csv", "a,b")},

		// What can be read is read.
		{media("application/json", `{"a":1}`), llm.Text{Text: "[application/json]\n{\"a\":1}"}},
		{media("image/svg+xml", "<svg/>"), llm.Text{Text: "[image/svg+xml]\n<svg/>"}},
		{media("image/png", "<p>gone</p>"), llm.Text{Text: "[text/plain]\n<p>gone</p>"}},

		{media("image/bmp", "BM\x46\x00\x00\x00"), note("image/bmp of 6 bytes is not shown: The API does not take this type in a result")},
		{media("audio/wav", "RIFF\x24\x00\x00\x00WAVEfmt "), note("audio/wav of 16 bytes is not shown: The API does not take this type in a result")},
		{media("", "\x01\x02"), note("a medium of no known type of 2 bytes is not shown: its type is not known")},
		{media("image/png", ""), note("image/png of 0 bytes is not shown: it has no data")},

		{llm.Media{URL: "https://h/a.png"}, llm.Media{URL: "https://h/a.png"}},
		{llm.Media{URL: "https://h/a", MIME: "image/jpg"}, llm.Media{URL: "https://h/a", MIME: "image/jpeg"}},
		{llm.Media{URL: "https://h/a", MIME: "video/mp4"}, note("video/mp4 at https://h/a is not shown: The API does not take this type by address")},
		{llm.Media{URL: "ftp://h/a"}, note("a medium of no known type at ftp://h/a is not shown: The API does not read this address")},
		{llm.Media{URL: "/etc/passwd"}, note("a medium of no known type at /etc/passwd is not shown: a result cannot name a local file; a tool that may read it can return its bytes")},
		{llm.Media{URL: "file-1"}, llm.Media{URL: "file-1"}},
		{llm.Media{URL: "file_1"}, note("a medium of no known type at file_1 is not shown: the file is at another provider")},
		{llm.Media{URL: "file-1", MIME: "image/png"}, note("image/png at file-1 is not shown: The API does not take images by id")},
	} {
		got, note := rule.Take(c.in)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s %q (-want +got):\n%s", c.in.MIME, c.in.URL, c.in.Data, diff)
		}
		text, isText := got.(llm.Text)
		if (note != "") != (isText && strings.Contains(text.Text, " is not shown: ")) {
			t.Errorf("%s %s: the note is %q", c.in.MIME, c.in.URL, note)
		}
	}

	blind := rule
	blind.Blind = true
	if got, _ := blind.Take(media("image/png", pngBytes)); !strings.Contains(got.(llm.Text).Text, "the model does not see images") {
		t.Errorf("a model that is blind gets %v", got)
	}
}

// Only results change, only in the copy, and one notice says what is left out.
func TestApply(t *testing.T) {
	bmp := llm.Media{MIME: "image/bmp", Data: []byte("BM\x46\x00\x00\x00")}
	req := &llm.Request{Messages: []llm.Message{
		{Role: llm.RoleUser, Parts: []llm.Part{bmp}},
		llm.Assistant(llm.ToolCall{ID: "a", Name: "f"}, llm.ToolCall{ID: "b", Name: "f"}),
		llm.Results(llm.ToolResult{CallID: "a", Parts: []llm.Part{llm.Text{Text: "chart"}, bmp}},
			llm.ToolResult{CallID: "b", Parts: []llm.Part{llm.Media{MIME: "image/jpg", Data: []byte(jpegBytes)}}}),
	}}
	before := req.Messages[2].Clone()
	var notices []string
	out, more := rule.Apply(req, func(d llm.Delta, _ error) bool {
		notices = append(notices, d.Notice.Code+": "+d.Notice.Text)
		return false
	})
	if more {
		t.Error("the consumer wants no more, and Apply goes on")
	}
	const left = "image/bmp of 6 bytes is not shown: The API does not take this type in a result"
	want := []string{"media_not_taken: The API: the model reads notes in place of media in results: " + left}
	if diff := cmp.Diff(want, notices); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	noted := []llm.Part{llm.Text{Text: "chart"}, llm.Text{Text: "[" + left + "]"}}
	wantMessage := llm.Results(llm.ToolResult{CallID: "a", Parts: noted},
		llm.ToolResult{CallID: "b", Parts: []llm.Part{llm.Media{MIME: "image/jpeg", Data: []byte(jpegBytes)}}})
	if diff := cmp.Diff(wantMessage, out.Messages[2]); diff != "" {
		t.Errorf("the results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, req.Messages[2]); diff != "" {
		t.Errorf("the conversation has changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(req.Messages[:2], out.Messages[:2]); diff != "" {
		t.Errorf("other messages have changed (-want +got):\n%s", diff)
	}

	plain := &llm.Request{Messages: req.Messages[:2]}
	if same, more := rule.Apply(plain, nil); same != plain || !more {
		t.Error("a request without media in results is copied")
	}
}
