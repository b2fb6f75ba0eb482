package outside_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
)

// The values of the table "Style Examples" of OpenAPI.
const (
	colour = `"blue"`
	list   = `["blue","black","brown"]`
	rgb    = `{"R":100,"G":200,"B":150}`
)

// The rows of "Style Examples" in OpenAPI 3.0.4 and 3.1.1, section Parameter Object. Objects are in
// the order of their names here, B before G before R. The styles label and matrix are as RFC 6570
// has them; the tables of 3.0.3 and 3.1.0 separate a label's values by points in both rows.
func TestStyleExamples(t *testing.T) {
	host, last := server(t, nil)
	for _, test := range []struct{ in, style, explode, value, want string }{
		{"path", "simple", "false", colour, "blue"},
		{"path", "simple", "false", list, "blue,black,brown"},
		{"path", "simple", "false", rgb, "B,150,G,200,R,100"},
		{"path", "simple", "true", list, "blue,black,brown"},
		{"path", "simple", "true", rgb, "B=150,G=200,R=100"},
		{"path", "label", "false", colour, ".blue"},
		{"path", "label", "false", list, ".blue,black,brown"},
		{"path", "label", "false", rgb, ".B,150,G,200,R,100"},
		{"path", "label", "true", list, ".blue.black.brown"},
		{"path", "label", "true", rgb, ".B=150.G=200.R=100"},
		{"path", "matrix", "false", colour, ";color=blue"},
		{"path", "matrix", "false", list, ";color=blue,black,brown"},
		{"path", "matrix", "false", rgb, ";color=B,150,G,200,R,100"},
		{"path", "matrix", "true", colour, ";color=blue"},
		{"path", "matrix", "true", list, ";color=blue;color=black;color=brown"},
		{"path", "matrix", "true", rgb, ";B=150;G=200;R=100"},

		{"query", "form", "false", `""`, "color="},
		{"query", "form", "false", colour, "color=blue"},
		{"query", "form", "false", list, "color=blue,black,brown"},
		{"query", "form", "false", rgb, "color=B,150,G,200,R,100"},
		{"query", "form", "true", list, "color=blue&color=black&color=brown"},
		{"query", "form", "true", rgb, "B=150&G=200&R=100"},
		{"query", "spaceDelimited", "false", list, "color=blue%20black%20brown"},
		{"query", "spaceDelimited", "false", rgb, "color=B%20150%20G%20200%20R%20100"},
		{"query", "pipeDelimited", "false", list, "color=blue%7Cblack%7Cbrown"},
		{"query", "pipeDelimited", "false", rgb, "color=B%7C150%7CG%7C200%7CR%7C100"},
		{"query", "deepObject", "true", rgb, "color%5BB%5D=150&color%5BG%5D=200&color%5BR%5D=100"},

		{"header", "simple", "false", list, "blue,black,brown"},
		{"header", "simple", "false", rgb, "B,150,G,200,R,100"},
		{"header", "simple", "true", rgb, "B=150,G=200,R=100"},

		// not in the table: what it leaves open
		{"query", "spaceDelimited", "true", list, "color=blue&color=black&color=brown"},
		{"query", "deepObject", "true", `{"a":{"b":1},"c":["x","y"],"n":null}`, "color%5Ba%5D%5Bb%5D=1&color%5Bc%5D=x&color%5Bc%5D=y"},
		{"query", "form", "false", `["a,b","c"]`, "color=a%2Cb,c"},
		{"path", "simple", "false", `["a/b"]`, "a%2Fb"},
	} {
		place := "/x"
		if test.in == "path" {
			place = "/x/{color}"
		}
		doc := `
openapi: 3.1.0
info: {title: T, version: "1"}
servers: [{url: "http://` + host + `"}]
paths:
  ` + place + `:
    get:
      operationId: op
      parameters: [{name: color, in: ` + test.in + `, required: true, style: ` + test.style + `, explode: ` + test.explode + `, schema: {}}]
`
		s, err := openapi(t, doc, ", base_url: 'http://"+host+"'")
		if err != nil {
			t.Fatal(err)
		}
		want(t, call(t, s, "op", `{"color":`+test.value+`}`), pawl.OutcomeOK)
		path, query, _ := strings.Cut(last.uri, "?")
		got := map[string]string{"path": strings.TrimPrefix(path, "/x/"), "query": query, "header": last.header.Get("Color")}[test.in]
		if got != test.want {
			t.Errorf("%s %s explode %s of %s:\ngot  %s\nwant %s", test.in, test.style, test.explode, test.value, got, test.want)
		}
	}
}

// The bodies of OpenAPI 3.0.4 and 3.1.1, sections "Encoding the x-www-form-urlencoded Media Type"
// and Encoding Object, and what they leave open.
func TestForms(t *testing.T) {
	host, last := server(t, nil)
	const address = `{"city":"Somewhere","state":"CA","streetAddress":"123 Example Dr.","zip":"99999+1234"}`
	for name, test := range map[string]struct{ encoding, body, want string }{
		"an object without encoding is JSON": {"",
			`{"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6","address":` + address + `}`,
			"address=" + url.QueryEscape(address) + "&id=f81d4fae-7dec-11d0-a765-00a0c91e6bf6"},
		"a text as application/json": {"id: {contentType: application/json}",
			`{"id":"f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}`, "id=%22f81d4fae-7dec-11d0-a765-00a0c91e6bf6%22"},
		"a picture as base64url": {"icon: {contentType: 'image/png, image/jpeg'}",
			`{"name":"example","icon":"iVBORw0KGgoAAAANSUhEUgAAABgAAAAYCAYAAADgdz34"}`,
			"icon=iVBORw0KGgoAAAANSUhEUgAAABgAAAAYCAYAAADgdz34&name=example"},
		"a list has a field for each element": {"", `{"items":["a","b"],"n":2}`, "items=a&items=b&n=2"},
		"a list of objects":                   {"", `{"l":[{"a":1},{"a":2}]}`, "l=%7B%22a%22%3A1%7D&l=%7B%22a%22%3A2%7D"},
		"a list as application/json":          {"l: {contentType: application/json}", `{"l":["a"]}`, "l=%5B%22a%22%5D"},
		"form without explode":                {"l: {explode: false}", `{"l":["a,","b"]}`, "l=a%2C,b"},
		"an object by style form":             {"o: {style: form}", `{"o":{"R":1,"G":2}}`, "G=2&R=1"},
		"deepObject":                          {"o: {style: deepObject, explode: true}", `{"o":{"R":1,"G":{"x":2}}}`, "o%5BG%5D%5Bx%5D=2&o%5BR%5D=1"},
		"spaceDelimited":                      {"l: {style: spaceDelimited}", `{"l":["a","b"]}`, "l=a%20b"},
		"pipeDelimited":                       {"l: {style: pipeDelimited}", `{"l":["a","b"]}`, "l=a%7Cb"},
		"style counts more than contentType":  {"o: {style: form, contentType: application/json}", `{"o":{"a":"b"}}`, "a=b"},
		"spaces, signs, null, true":           {"", `{"a b":"c&d=e+f g","n":null,"t":true}`, "a+b=c%26d%3De%2Bf+g&t=true"},
		"an empty list":                       {"", `{"l":[],"a":1}`, "a=1"},
	} {
		s, err := openapi(t, posted(host, "application/x-www-form-urlencoded", test.encoding), ", base_url: 'http://"+host+"'")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want(t, call(t, s, "op", `{"body":`+test.body+`}`), pawl.OutcomeOK)
		if diff := cmp.Diff(last.body, test.want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
		if got := last.header.Get("Content-Type"); got != "application/x-www-form-urlencoded" {
			t.Errorf("%s: Content-Type is %s", name, got)
		}
	}

	s, err := openapi(t, posted(host, "application/x-www-form-urlencoded", ""), ", base_url: 'http://"+host+"'")
	if err != nil {
		t.Fatal(err)
	}
	want(t, call(t, s, "op", `{"body":["a"]}`), pawl.OutcomeError, "give an object")
}

// posted is a document with one operation, whose body is optional.
func posted(host, kind, encoding string) string {
	return `
openapi: 3.1.0
info: {title: T, version: "1"}
servers: [{url: "http://` + host + `"}]
paths:
  /x:
    post:
      operationId: op
      requestBody: {content: {'` + kind + `': {schema: {}, encoding: {` + encoding + `}}}}
`
}

// A media type that can be written is written in its charset. An operation with any other body is
// left out with the reason, whether its body is optional or not.
func TestBodyTypes(t *testing.T) {
	host, last := server(t, nil)
	for kind, test := range map[string]struct{ sent, contentType, left string }{
		"application/json":                     {sent: `"Grüße"`, contentType: "application/json"},
		"application/json; charset=UTF-8":      {sent: `"Grüße"`, contentType: "application/json; charset=UTF-8"},
		"application/json; charset=iso-8859-1": {sent: "\"Gr\xfc\xdfe\"", contentType: "application/json; charset=iso-8859-1"},
		"application/vnd.api+json":             {sent: `"Grüße"`, contentType: "application/vnd.api+json"},
		"*/*":                                  {left: "neither JSON nor a simple form nor text: */*"},
		"application/*":                        {left: "application/*"},
		"text/plain":                           {sent: "Grüße", contentType: "text/plain; charset=utf-8"},
		"text/plain; charset=windows-1252":     {sent: "Gr\xfc\xdfe", contentType: "text/plain; charset=windows-1252"},
		"application/xml":                      {left: "neither JSON nor a simple form nor text: application/xml"},
		"multipart/form-data":                  {left: "multipart/form-data"},
		"application/octet-stream":             {left: "application/octet-stream"},
		"application/json; charset=klingon":    {left: "application/json; charset=klingon"},
		"application/x-www-form-urlencoded; charset=iso-8859-1": {sent: "a=Gr%FC%DFe", contentType: "application/x-www-form-urlencoded; charset=iso-8859-1"},
	} {
		s, err := openapi(t, posted(host, kind, ""), ", base_url: 'http://"+host+"'")
		if err != nil {
			t.Fatal(err)
		}
		if test.left != "" {
			if left := s.LeftOut(); len(left) != 1 || !strings.Contains(left[0].Reason, test.left) {
				t.Errorf("%s: left out is %v, want %q", kind, left, test.left)
			}
			continue
		}
		body := `"Grüße"`
		if strings.Contains(kind, "form") {
			body = `{"a":"Grüße"}`
		}
		want(t, call(t, s, "op", `{"body":`+body+`}`), pawl.OutcomeOK)
		if last.body != test.sent || last.header.Get("Content-Type") != test.contentType {
			t.Errorf("%s: sent %q as %q, want %q as %q", kind, last.body, last.header.Get("Content-Type"), test.sent, test.contentType)
		}
	}

	s, err := openapi(t, posted(host, "text/plain; charset=iso-8859-1", ""), ", base_url: 'http://"+host+"'")
	if err != nil {
		t.Fatal(err)
	}
	want(t, call(t, s, "op", `{"body":"日本"}`), pawl.OutcomeError, "the charset of text/plain; charset=iso-8859-1 does not have")
}
