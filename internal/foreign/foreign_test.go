package foreign_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/foreign"
	"github.com/pawl-go/pawl/llm"
)

const (
	png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x3e\x3f"
	jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01"
	bmp  = "BM\x46\x00\x00\x00\x00\x00"
)

var encode = base64.StdEncoding.EncodeToString

// shown describes parts: texts, and media as <type size>.
func shown(parts []llm.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			b.WriteString(p.Text)
		case llm.Media:
			fmt.Fprintf(&b, "<%s %d>", p.MIME, len(p.Data))
		}
	}
	return b.String()
}

// Each block is read by itself. If one is damaged, the text before it and the text after it still
// reach the model.
func TestBlocks(t *testing.T) {
	for _, c := range []struct{ name, block, want string }{
		{"an image", `{"type":"image","data":"` + encode([]byte(png)) + `","mimeType":"image/png"}`, "<image/png 18>"},
		{"a data: URI", `{"type":"image","data":"data:image/png;base64,` + encode([]byte(png)) + `","mimeType":"image/png"}`, "<image/png 18>"},
		{"a data: URI alone", `{"type":"image","data":"data:image/png;base64,` + encode([]byte(png)) + `"}`, "<image/png 18>"},
		{"base64 without padding", `{"type":"image","data":"` + base64.RawStdEncoding.EncodeToString([]byte(bmp)) + `","mimeType":"image/bmp"}`, "<image/bmp 8>"},
		{"URL-safe base64", `{"type":"image","data":"` + base64.URLEncoding.EncodeToString([]byte(png)) + `","mimeType":"image/png"}`, "<image/png 18>"},
		{"base64 with line breaks", `{"type":"image","data":"` + encode([]byte(png))[:8] + `\n` + encode([]byte(png))[8:] + `","mimeType":"image/png"}`, "<image/png 18>"},
		{"JPEG called PNG", `{"type":"image","data":"` + encode([]byte(jpeg)) + `","mimeType":"image/png"}`, "<image/jpeg 12>"},
		{"image/jpg", `{"type":"image","data":"` + encode([]byte(jpeg)) + `","mimeType":"image/jpg"}`, "<image/jpeg 12>"},
		{"no type", `{"type":"image","data":"` + encode([]byte(png)) + `"}`, "<image/png 18>"},
		{"another name of the type", `{"type":"image","data":"` + encode([]byte("\x01\x02\x03")) + `","mime_type":"image/x-raw"}`, "<image/x-raw 3>"},
		{"Anthropic's form", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + encode([]byte(png)) + `"}}`, "<image/png 18>"},
		{"OpenAI's form", `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + encode([]byte(png)) + `"}}`, "<image/png 18>"},
		{"bytes that are no image", `{"type":"image","data":"` + encode([]byte("\x01\x02\x03")) + `","mimeType":"image/png"}`, "[image/png is left out: its 3 bytes are not of that type]"},
		{"a page called an image", `{"type":"image","data":"` + encode([]byte("<p>gone")) + `","mimeType":"image/png"}`, "[what is called image/png is text]\n<p>gone"},
		{"no base64", `{"type":"image","data":"a picture of a cat","mimeType":"image/png"}`, "[image/png is left out: it is not base64]"},
		{"no data", `{"type":"image","mimeType":"image/png"}`, "[image/png is left out: it has no data]"},
		{"data of null", `{"type":"image","data":null,"mimeType":"image/png"}`, "[image/png is left out: it has no data]"},
		{"data that is empty", `{"type":"image","data":"","mimeType":"image/png"}`, "[image/png of 0 bytes is left out]"},
		{"an address", `{"type":"image","url":"https://example.com/a.png","mimeType":"image/png"}`, "[a link to the resource https://example.com/a.png: image image/png]"},
		{"too large", `{"type":"image","data":"` + encode([]byte(png+strings.Repeat("x", 100))) + `","mimeType":"image/png"}`, "[image/png of 118 bytes is left out]"},
		{"a sound", `{"type":"audio","data":"` + encode([]byte("RIFF\x24\x00\x00\x00WAVEfmt ")) + `","mimeType":"audio/x-wav"}`, "<audio/wav 16>"},

		{"a resource of text", `{"type":"resource","resource":{"uri":"a://c","mimeType":"text/csv","text":"a,b"}}`, "[resource a://c, text/csv]\na,b"},
		{"text as a blob", `{"type":"resource","resource":{"uri":"a://c","mimeType":"text/csv","blob":"` + encode([]byte("a,b\n1,2\n")) + `"}}`, "[resource a://c, text/csv]\na,b\n1,2\n"},
		{"text of no type as a blob", `{"type":"resource","resource":{"uri":"a://c","blob":"` + encode([]byte("a,b")) + `"}}`, "[resource a://c]\na,b"},
		{"latin text as a blob", `{"type":"resource","resource":{"uri":"a://c","mimeType":"text/plain","blob":"` + encode([]byte("caf\xe9")) + `"}}`, "[resource a://c, text/plain]\ncafé"},
		{"text in a charset", `{"type":"resource","resource":{"uri":"a://c","mimeType":"text/plain; charset=iso-8859-2","blob":"` + encode([]byte("\xb1")) + `"}}`,
			"[resource a://c, text/plain; charset=iso-8859-2]\ną"},
		{"text in an unknown charset", `{"type":"resource","resource":{"uri":"a://c","mimeType":"text/plain; charset=klingon","blob":"` + encode([]byte("caf\xe9")) + `"}}`,
			"[resource a://c, text/plain; charset=klingon]\ncaf\uFFFD"},
		{"a picture as a blob", `{"type":"resource","resource":{"uri":"a://c","mimeType":"application/octet-stream","blob":"` + encode([]byte(png)) + `"}}`, "[resource a://c, application/octet-stream]\n<image/png 18>"},
		{"a document as a blob", `{"type":"resource","resource":{"uri":"a://c","mimeType":"application/pdf","blob":"` + encode([]byte("%PDF-1.7")) + `"}}`, "[resource a://c, application/pdf]\n<application/pdf 8>"},
		{"an archive as a blob", `{"type":"resource","resource":{"uri":"a://c","mimeType":"application/zip","blob":"` + encode([]byte("PK\x03\x04\x00")) + `"}}`, "[resource a://c, application/zip]\n[application/zip: 5 bytes that are not text]"},
		{"bytes as a blob", `{"type":"resource","resource":{"uri":"a://c","blob":"AAAA"}}`, "[resource a://c]\n[3 bytes that are not text]"},
		{"a resource without content", `{"type":"resource","resource":{"uri":"a://c"}}`, "[resource a://c]\n[the resource has no content]"},
		{"a resource that is a text", `{"type":"resource","resource":"words"}`, "[content of an unknown kind: resource]\n\"words\""},
		{"a link", `{"type":"resource_link","uri":"a://c","name":"c","mimeType":"text/csv","description":"The  table."}`, "[a link to the resource a://c: c text/csv The table.]"},

		{"text that is no string", `{"type":"text","text":{"a":1}}`, `{"a":1}`},
		{"text without a type", `{"text":"words"}`, "words"},
		{"a string", `"words"`, "words"},
		{"a number", `7`, "7"},
		{"null", `null`, ""},
		{"an unknown type with text", `{"type":"thinking","text":"hm"}`, "hm"},
		{"an unknown type with data", `{"type":"video","data":"` + encode([]byte("\x00\x00\x00\x20ftypisom\x00\x00\x02\x00")) + `","mimeType":"video/mp4"}`, "<video/mp4 16>"},
		{"an unknown type", `{"type":"chart","series":[1,2]}`, "[content of an unknown kind: chart]\n{\"type\":\"chart\",\"series\":[1,2]}"},
		{"no type", `{"a":1}`, "[content of an unknown kind: without a type]\n{\"a\":1}"},
		{"a type that is a number", `{"type":7,"text":"words"}`, "words"},
		{"blocks in a block", `{"type":"tool_result","content":[{"type":"text","text":"inner"}]}`, "inner"},
	} {
		r := foreign.Reader{MaxMedia: 100}
		r.Blocks(json.RawMessage(`[{"type":"text","text":"before"},` + c.block + `,{"type":"text","text":"after"}]`))
		want := "before\n" + c.want
		isText := c.want != "" && !strings.HasSuffix(c.want, ">")
		if isText && !strings.HasSuffix(c.want, "\n") {
			want += "\n"
		}
		if diff := cmp.Diff(want+"after", shown(r.Parts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Content that is no list is read as well.
func TestContent(t *testing.T) {
	for in, want := range map[string]string{
		``:                                  "",
		`null`:                              "",
		`[]`:                                "",
		`"words"`:                           "words",
		`{"type":"text","text":"one"}`:      "one",
		`7`:                                 "7",
		`[[{"type":"text","text":"deep"}]]`: "deep",
		`[[1,{"a":2}]]`:                     `[1,{"a":2}]`,
		strings.Repeat(`{"type":"tool_result","content":`, 20) + `[]` + strings.Repeat(`}`, 20): strings.Repeat(`{"type":"tool_result","content":`, 11) + `[]` + strings.Repeat(`}`, 11),
	} {
		var r foreign.Reader
		r.Blocks(json.RawMessage(in))
		if got := shown(r.Parts); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// What is left out is reported, and texts are cleaned.
func TestReports(t *testing.T) {
	r := foreign.Reader{Clean: func(s string) string { return strings.ReplaceAll(s, "\u200b", "") }}
	r.Blocks(json.RawMessage(`[{"type":"text","text":"a\u200bb"},{"type":"image","data":"*","mimeType":"ima\u200bge/png"},{"type":"resource_link","uri":"x\u200by"}]`))
	if got, want := shown(r.Parts), "ab\n[image/png is left out: it is not base64]\n[a link to the resource xy: ]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"image/png is left out: it is not base64"}, r.Dropped); diff != "" {
		t.Errorf("reported (-want +got):\n%s", diff)
	}
}

// Structured data follows the texts unless they hold it.
func TestStructured(t *testing.T) {
	for _, c := range []struct {
		name, data string
		texts      []string
		held       bool
	}{
		{"a summary", `{"projects":["alpha","beta"]}`, []string{"list_projects returned 2 item(s)."}, false},
		{"the same JSON", `{"projects":["alpha","beta"],"n":2}`, []string{"{\n  \"n\": 2,\n  \"projects\": [\"alpha\", \"beta\"]\n}"}, true},
		{"one text for each element", `{"result":[{"a":1},{"a":2}]}`, []string{`{"a":1}`, `{"a":2}`}, true},
		{"one element is missing", `{"result":[{"a":1},{"a":2}]}`, []string{`{"a":1}`}, false},
		{"all values in prose", `{"degrees":22.50,"sky":"partly cloudy","city":"Oslo"}`, []string{"Oslo: 22.5 degrees, partly cloudy."}, true},
		{"a part of a word", `{"name":"alpha"}`, []string{"alphabet"}, false},
		{"a part of a number", `{"n":2}`, []string{"20 items, 1,2 and 0.2, -2"}, false},
		{"a number before a full stop", `{"n":2}`, []string{"There are 2."}, true},
		{"a boolean", `{"ok":true}`, []string{"It worked."}, false},
		{"a boolean in words", `{"ok":true}`, []string{"ok: true"}, true},
		{"null", `{"owner":null}`, []string{"Found."}, false},
		{"an empty list", `{"items":[]}`, []string{"Found nothing."}, false},
		{"nothing", `{}`, []string{"Done."}, false},
		{"names that are data", `{"counts":{"a/b.txt":3}}`, []string{"3 matches"}, false},
		{"names that are data, in the text", `{"counts":{"a/b.txt":3}}`, []string{"a/b.txt: 3"}, true},
		{"escaped in JSON", `{"path":"C:\\x","quote":"a \"b\""}`, []string{`{"more":1,"path":"C:\\x","quote":"a \"b\""}`}, true},
		{"large numbers", `{"n":9007199254740993}`, []string{"9007199254740992"}, false},
		{"a number beyond all", `{"n":1e999999999}`, []string{"many"}, false},
	} {
		if got := foreign.Holds(c.texts, json.RawMessage(c.data)); got != c.held {
			t.Errorf("%s: held %v, want %v", c.name, got, c.held)
		}
		var r foreign.Reader
		for _, text := range c.texts {
			r.Text(text)
		}
		r.Structured(json.RawMessage(c.data))
		if got := strings.HasSuffix(shown(r.Parts), "[structured content]\n"+c.data); got == c.held {
			t.Errorf("%s: the model reads %q", c.name, shown(r.Parts))
		}
	}

	var alone foreign.Reader
	alone.Structured(json.RawMessage(`{"a":1}`))
	if got := shown(alone.Parts); got != `{"a":1}` {
		t.Errorf("data alone is %q", got)
	}
}

// A search that would take too long ends: the model then reads the data twice.
func TestHoldsIsBounded(t *testing.T) {
	var list []string
	for i := range 50_000 {
		list = append(list, fmt.Sprintf("leaf %d", i))
	}
	data, _ := json.Marshal(list)
	text := strings.Join(list, " ")
	if foreign.Holds([]string{text}, data) {
		t.Error("the search was not ended")
	}
	if !foreign.Holds([]string{string(data)}, data) {
		t.Error("equal JSON is not held")
	}
}

// No content makes a reader panic or lose the text around it.
func FuzzBlocks(f *testing.F) {
	f.Add(`{"type":"image","data":"data:,","mimeType":";"}`)
	f.Add(`{"type":"resource","resource":{"blob":"/+8=","mimeType":"text/"}}`)
	f.Add(`[[[1]]]`)
	f.Fuzz(func(t *testing.T, block string) {
		if !json.Valid([]byte(block)) {
			t.Skip()
		}
		var r foreign.Reader
		r.Blocks(json.RawMessage(`["before",` + block + `,"after"]`))
		r.Structured(json.RawMessage(block))
		if text := shown(r.Parts); !strings.HasPrefix(text, "before") || !strings.Contains(text, "after") {
			t.Errorf("%s: %q", block, text)
		}
	})
}

// Programs that were made for one provider write its blocks, and base64 in the forms of the
// languages and transports that it came through.
func TestFormsOfOthers(t *testing.T) {
	image := png + "\xfb\xff\xfe\x3e\x3f\x01"
	coded := encode([]byte(image)) // has + and /
	escaped := strings.NewReplacer("+", "%2B", "/", "%2F").Replace(coded)
	const isImage = "<image/png 24>"
	for block, want := range map[string]string{
		`{"type":"image","data":"data:image/png;base64,` + escaped + `"}`:                            isImage,
		`{"type":"image","data":"data:image/png;charset=utf-8;base64,` + coded + `"}`:                isImage,
		`{"type":"image","data":"DATA:IMAGE/PNG;BASE64,` + coded + `"}`:                              isImage,
		`{"type":"image","data":"base64,` + coded + `"}`:                                             isImage,
		`{"type":"image","data":"` + coded[:20] + " " + coded[20:] + `"}`:                            isImage,
		`{"type":"image","data":"` + strings.ReplaceAll(coded, "+", " ") + `"}`:                      isImage,
		`{"type":"image","data":"\"` + coded + `\""}`:                                                isImage,
		`{"type":"image","data":"` + "\ufeff" + coded + `"}`:                                         isImage,
		`{"type":"image","data":"` + coded[:9] + `\u000b\n` + coded[9:] + `"}`:                       isImage,
		`{"type":"image","data":"` + strings.ReplaceAll(coded, "/", `\\/`) + `"}`:                    isImage,
		`{"inline_data":{"mime_type":"image/png","data":"` + coded + `"}}`:                           isImage,
		`{"type":"image","base64":"` + coded + `","mime_type":"image/png"}`:                          isImage,
		`{"type":"image","image":"data:image/png;base64,` + coded + `"}`:                             isImage,
		`{"type":"image","image":"` + coded + `","mediaType":"image/png"}`:                           isImage,
		`{"type":"image","source":"data:image/png;base64,` + coded + `"}`:                            isImage,
		`{"image":{"format":"png","source":{"bytes":"` + coded + `"}}}`:                              isImage,
		`{"type":"image","data":[137,80,78,71,13,10,26,10]}`:                                         "<image/png 8>",
		`{"type":"image","data":{"type":"Buffer","data":[137,80,78,71,13,10,26,10]}}`:                "<image/png 8>",
		`{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0xLjQ="}}`:            "<application/pdf 8>",
		`{"type":"input_file","file_data":"data:application/pdf;base64,JVBERi0xLjQ="}`:               "<application/pdf 8>",
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"some words"}}`: "some words",
		`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"inner"}]}}`: "inner",
		`{"type":"search_result","source":"https://a.example","title":"T","content":[{"type":"text","text":"found"}]}`: "[search_result: T https://a.example]\n" +
			"found",
		`{"content":[{"type":"text","text":"nested"}],"isError":false}`: "nested",
		`{"json":{"a":1}}`:                                                                               `{"a":1}`,
		`{"type":"text","value":"words"}`:                                                                "words",
		`{"type":"text","content":"words"}`:                                                              "words",
		`{"type":"text","text":{"value":"deep"}}`:                                                        "deep",
		`{"type":"text","text":null}`:                                                                    "",
		`{"type":"resource","resource":{"uri":"a://b","text":"words","blob":""}}`:                        "[resource a://b]\nwords",
		`{"type":"image","mimeType":"image/png","data":"https://a.example/b.png"}`:                       "[a link to the resource https://a.example/b.png: image/png]",
		`{"type":"image","mimeType":"image/svg+xml","data":"<svg xmlns='http://www.w3.org/2000/svg'/>"}`: "<svg xmlns='http://www.w3.org/2000/svg'/>",

		// What only looks like one of these stays what it is.
		`{"type":"image","data":"a picture of a cat"}`:               "[data is left out: it is not base64]",
		`{"type":"chart","data":[1,2]}`:                              "[content of an unknown kind: chart]\n" + `{"type":"chart","data":[1,2]}`,
		`{"type":"table","data":"a,b"}`:                              "[content of an unknown kind: table]\n" + `{"type":"table","data":"a,b"}`,
		`{"type":"verdict","data":"good"}`:                           "[content of an unknown kind: verdict]\n" + `{"type":"verdict","data":"good"}`,
		`{"type":"note","source":"the archive","content":"a story"}`: "[content of an unknown kind: note]\n" + `{"type":"note","source":"the archive","content":"a story"}`,
		`{"type":"table","data":[[1,2],[3,4]]}`:                      "[content of an unknown kind: table]\n" + `{"type":"table","data":[[1,2],[3,4]]}`,
	} {
		var r foreign.Reader
		r.Blocks(json.RawMessage(`[` + block + `]`))
		if got := shown(r.Parts); got != want {
			t.Errorf("%s:\n got %q\nwant %q", block, got, want)
		}
	}
}
