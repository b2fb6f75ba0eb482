package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/provider/gemini"
	"github.com/pawl-go/pawl/provider/openai"
)

// resultWires are the wires, and the models of two for which it matters.
var resultWires = []struct {
	name, model string
	encode      func(*llm.Request) ([]byte, error)
}{
	{"anthropic", "claude-sonnet-4-5", anthropic.EncodeMessages},
	{"openai", "gpt-5-mini", openai.EncodeResponses},
	{"openai-chat", "gpt-5-mini", openai.EncodeChat},
	{"gemini 2", "gemini-2.5-flash", gemini.EncodeGenerate},
	{"gemini 3", "gemini-3-flash-preview", gemini.EncodeGenerate},
}

// A request with any media in the result of a tool can be sent: a wire takes a medium, or the model
// reads a note in its place. A later request with the same history can be sent as well. The same
// media in a user's message are errors where a wire does not take them.
func TestResultMediaNeverFail(t *testing.T) {
	const (
		png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
		jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF\x00"
	)
	data := func(mime, data string) llm.Media { return llm.Media{MIME: mime, Data: []byte(data)} }
	link := func(mime, url string) llm.Media { return llm.Media{MIME: mime, URL: url} }
	const all, none = "anthropic openai openai-chat gemini 2 gemini 3", ""
	for _, c := range []struct {
		name  string
		media llm.Media
		taken string // the wires that send it
		sent  string // in the bodies that have it
	}{
		{"png", data("image/png", png), all, "image/png"},
		{"jpeg", data("image/jpeg", jpeg), all, "image/jpeg"},
		{"image/jpg", data("image/jpg", jpeg), all, "image/jpeg"},
		{"jpeg called png", data("image/png", jpeg), all, "image/jpeg"},
		{"png of no type", data("", png), all, "image/png"},
		{"png in a data: URI", link("", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg"), all, "image/png"},
		{"webp", data("image/webp", "RIFF\x24\x00\x00\x00WEBPVP8 "), all, "image/webp"},
		{"gif", data("image/gif", "GIF89a\x01\x00\x01\x00"), "anthropic openai openai-chat", "image/gif"},
		{"bmp", data("image/bmp", "BM\x46\x00\x00\x00\x00\x00"), none, ""},
		{"tiff", data("image/tiff", "II*\x00\x08\x00\x00\x00"), none, ""},
		{"heic", data("image/heic", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00"), "gemini 2 gemini 3", "image/heic"},
		{"an image of an unheard type", data("image/x-new", "\x01\x02\x03"), none, ""},
		{"image/*", data("image/*", "\x01\x02\x03"), none, ""},
		{"svg", data("image/svg+xml", "<svg/>"), all, "<svg/>"},
		{"a page called png", data("image/png", "<p>gone</p>"), all, "gone</p>"},
		{"wav", data("audio/x-wav", "RIFF\x24\x00\x00\x00WAVEfmt "), "gemini 2 gemini 3", "audio/wav"},
		{"video", data("video/mp4", "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00"), "gemini 2 gemini 3", "video/mp4"},
		{"pdf", data("application/pdf", "%PDF-1.7\n\x01"), all, "application/pdf"},
		{"csv", data("text/csv", "a,b\n1,2"), all, ""},
		{"json", data("application/json", `{"a":1}`), all, ""},
		{"zip", data("application/zip", "PK\x03\x04\x00"), none, ""},
		{"no data and no address", llm.Media{MIME: "image/png"}, none, ""},
		{"nothing", llm.Media{}, none, ""},
		{"an address", link("image/png", "https://example.com/a.png"), all, "https://example.com/a.png"},
		{"an address of no type", link("", "https://example.com/a"), all, "https://example.com/a"},
		{"an address of another scheme", link("image/png", "ftp://example.com/a"), none, ""},
		{"a bucket", link("image/png", "gs://bucket/a"), "gemini 2 gemini 3", "gs://bucket/a"},
		{"a local file", link("", "/etc/passwd"), none, ""},
		{"a local file by URL", link("image/png", "file:///etc/passwd"), none, ""},
		{"a file at OpenAI", link("", "file-1"), "openai openai-chat", "file-1"},
		{"a file at Anthropic", link("image/png", "file_1"), "anthropic", "file_1"},
		{"a data: URI that is none", link("", "data:image/png;base64"), none, ""},
		{"a data: URI that is no base64", link("", "data:image/png;base64,*"), none, ""},
	} {
		for _, failed := range []bool{false, true} {
			for _, w := range resultWires {
				name := fmt.Sprintf("%s, %s, failed %v", w.name, c.name, failed)
				result := llm.ToolResult{CallID: "a", IsError: failed, Parts: []llm.Part{llm.Text{Text: "chart"}, c.media}}
				req := &llm.Request{Model: w.model, Messages: []llm.Message{
					llm.User("u"),
					llm.Assistant(llm.ToolCall{ID: "a", Name: "f", Args: []byte(`{}`)}),
					llm.Results(result),
					llm.Assistant(llm.Text{Text: "I see."}),
					llm.User("And?"),
				}}
				body, err := w.encode(req)
				if err != nil || !json.Valid(body) {
					t.Errorf("%s: %v", name, err)
					continue
				}

				// The words of notes are the same in each form of JSON.
				taken := strings.Contains(c.taken, w.name)
				if noted := strings.Contains(string(body), "is not shown: "); noted == taken {
					t.Errorf("%s: taken %v, want %v: %s", name, !noted, taken, body)
				}
				var plain strings.Builder
				_ = json.NewEncoder(&plain).Encode(c.sent)
				escaped := strings.Trim(strings.TrimSpace(plain.String()), `"`)
				inside := "text/plain\",\"data\":\"" + base64.StdEncoding.EncodeToString(c.media.Data)
				as := []string{c.sent, escaped, inside}
				if taken && !slices.ContainsFunc(as, func(s string) bool { return strings.Contains(string(body), s) }) {
					t.Errorf("%s: no %s in %s", name, c.sent, body)
				}
			}
		}
	}

	// The control: a user's picture is not replaced.
	for _, w := range resultWires[:3] {
		video := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{data("video/mp4", "\x01")}}
		req := &llm.Request{Model: w.model, Messages: []llm.Message{video}}
		if body, err := w.encode(req); err == nil {
			t.Errorf("%s sends a user's video: %s", w.name, body)
		}
	}
}

// A user's picture with a wrong name is sent with the name of its type, on every wire. Browsers,
// phones and programs write such names, and APIs refuse the request for them.
func TestUsersPicturesHaveTheirTypes(t *testing.T) {
	const jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF\x00"
	uri := ";base64," + base64.StdEncoding.EncodeToString([]byte(jpeg))
	for _, media := range []llm.Media{
		{MIME: "image/jpeg", Data: []byte(jpeg)},
		{MIME: "image/jpg", Data: []byte(jpeg)},
		{MIME: "IMAGE/JPEG", Data: []byte(jpeg)},
		{MIME: "image/pjpeg", Data: []byte(jpeg)},
		{MIME: "image/png", Data: []byte(jpeg)},
		{URL: "data:image/jpg" + uri},
		{URL: "data:image/png" + uri},
		{MIME: "image/jpg", URL: "data:image/png" + uri},
	} {
		for _, w := range resultWires {
			req := &llm.Request{Model: w.model, Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{media}}}}
			body, err := w.encode(req)
			if err != nil || !strings.Contains(string(body), "image/jpeg") {
				t.Errorf("%s: %s %.30s: %v, %s", w.name, media.MIME, media.URL, err, body)
			}
		}
	}
}
