package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// Servers report the same error in many forms. Members that only one provider has are read in
// addition.
func TestReadFailure(t *testing.T) {
	for body, want := range map[string]wire.Failure{
		`{"error":{"message":"m","type":"invalid_request_error","param":null,"code":"c"}}`: {Message: "m", Type: "invalid_request_error", Code: "c"},
		`{"type":"error","error":{"type":"overloaded_error","message":"m"}}`:               {Message: "m", Type: "overloaded_error"},
		`[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]`:             {Message: "m", Status: 429, Name: "RESOURCE_EXHAUSTED"},
		`{"error":"m"}`:                      {Message: "m"},
		`"m"`:                                {Message: "m"},
		`{"detail":[{"loc":["body"]}]}`:      {Message: `[{"loc":["body"]}]`},
		`{"Message":"m"}`:                    {Message: "m"},
		`{"error":null,"message":"m"}`:       {Message: "m"},
		`{"errors":[{"message":"m"}]}`:       {Message: "m"},
		`{"error":{"own":"x"}}`:              {},
		`{"what":1}`:                         {Message: `{"what":1}`},
		`{"error":{"message":"m","code":"c`:  {Message: "m"},
		`{"error":`:                          {Message: `{"error":`},
		"":                                   {},
		"  upstream is down \n":              {Message: "upstream is down"},
		"<html><head><title>502 Bad</title>": {Message: "an HTML page: 502 Bad"},
		"<!DOCTYPE html><p>no title":         {Message: "<!DOCTYPE html><p>no title"},
	} {
		got := wire.ReadFailure([]byte(body), func(name string, c *jsonscan.Cursor) bool {
			return name == "own" && c.String() == "x"
		})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", body, d)
		}
	}
}

func TestReadDataURI(t *testing.T) {
	for _, tt := range []struct{ in, want llm.Media }{
		{llm.Media{URL: "https://h/a.png"}, llm.Media{URL: "https://h/a.png"}},
		{llm.Media{URL: "data:image/png;base64,UE5H"}, llm.Media{MIME: "image/png", Data: []byte("PNG")}},
		{llm.Media{MIME: "image/x", URL: "data:image/png;base64,-_8="}, llm.Media{MIME: "image/x", Data: []byte{0xfb, 0xff}}},
		{llm.Media{URL: "data:text/html;charset=utf-8,a%20b"}, llm.Media{MIME: "text/html", Data: []byte("a b")}},
		{llm.Media{URL: "data:,a"}, llm.Media{MIME: "text/plain", Data: []byte("a")}},
	} {
		got, err := wire.ReadDataURI(tt.in)
		if d := cmp.Diff(tt.want, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", tt.in.URL, err, d)
		}
	}
	for _, bad := range []string{"data:image/png;base64", "data:image/png;base64,*", "data:,%zz"} {
		if got, err := wire.ReadDataURI(llm.Media{URL: bad}); err == nil {
			t.Errorf("%s: %+v", bad, got)
		}
	}
}
