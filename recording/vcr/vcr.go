// Package vcr reads the cassettes of other recorders into recordings: those of go-vcr (all its versions), of VCR for Ruby, and of VCR.py, pytest-recording and pydantic-ai, all in YAML.
//
//	r, err := vcr.Parse(yaml, nil)
//	m := openai.New("gpt-5-mini", &openai.Options{HTTP: recording.Play(r), Key: "none"})
//
// What is read is scrubbed as what a recording.Recorder keeps. A body that was compressed is told unpacked.
package vcr

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-go/pawl/recording"
	"github.com/pawl-go/pawl/redact"
)

// cassette is a file of any of them.
type cassette struct {
	Interactions     []interaction `yaml:"interactions"`      // go-vcr, VCR.py
	HTTPInteractions []interaction `yaml:"http_interactions"` // VCR
}

type interaction struct {
	Request  message `yaml:"request"`
	Response message `yaml:"response"`
}

// message is a request or a response.
type message struct {
	Method     string    `yaml:"method"`
	URI        string    `yaml:"uri"` // VCR, VCR.py
	URL        string    `yaml:"url"` // go-vcr
	Headers    headers   `yaml:"headers"`
	Body       yaml.Node `yaml:"body"`
	ParsedBody any       `yaml:"parsed_body"` // pydantic-ai
	Status     yaml.Node `yaml:"status"`
	Code       int       `yaml:"code"` // go-vcr
}

// headers may have one value or a list for each name.
type headers map[string]string

// UnmarshalYAML reads either.
func (h *headers) UnmarshalYAML(n *yaml.Node) error {
	var all map[string]yaml.Node
	if err := n.Decode(&all); err != nil {
		return err
	}
	*h = headers{}
	for name, v := range all {
		values := []string{v.Value}
		if v.Kind == yaml.SequenceNode {
			if err := v.Decode(&values); err != nil {
				return err
			}
		}
		(*h)[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return nil
}

// Parse reads a cassette. secrets may be nil. The error says which interaction cannot be read.
func Parse(text []byte, secrets *redact.Redactor) (*recording.Recording, error) {
	var c cassette
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	all := append(c.Interactions, c.HTTPInteractions...)
	if len(all) == 0 {
		return nil, errors.New("it has neither interactions (go-vcr, VCR.py) nor http_interactions (VCR)")
	}
	r := &recording.Recording{Form: recording.Form}
	for i, one := range all {
		e, err := one.exchange()
		if err != nil {
			return nil, fmt.Errorf("interaction %d: %w", i+1, err)
		}
		r.Exchanges = append(r.Exchanges, recording.Scrub(e, secrets))
	}
	return r, nil
}

func (x *interaction) exchange() (e recording.Exchange, err error) {
	q, a := &x.Request, &x.Response
	e.Request = recording.Request{Method: strings.ToUpper(q.Method), URL: q.URI + q.URL, Header: q.Headers}
	if e.Request.Method == "" {
		e.Request.Method = http.MethodGet // as go-vcr leaves it out
	}
	if e.Request.URL == "" {
		return e, errors.New("the request has no address")
	}
	if e.Request.Body, err = q.body(); err != nil {
		return e, fmt.Errorf("request: %w", err)
	}
	e.Response.Header = a.Headers
	if e.Response.Status, err = a.status(); err != nil {
		return e, err
	}
	if e.Response.Body, err = a.body(); err != nil {
		return e, fmt.Errorf("response: %w", err)
	}
	return e, nil
}

// status reads code: 200 (go-vcr), status: {code: 200} (VCR, VCR.py) and status: 200 OK.
func (m *message) status() (int, error) {
	if m.Code != 0 {
		return m.Code, nil
	}
	var s struct {
		Code int `yaml:"code"`
	}
	if m.Status.Kind == yaml.MappingNode && m.Status.Decode(&s) == nil && s.Code != 0 {
		return s.Code, nil
	}
	word, _, _ := strings.Cut(m.Status.Value, " ")
	if n, err := strconv.Atoi(word); err == nil {
		return n, nil
	}
	return 0, errors.New("the response has no status")
}

// body reads a text, !!binary, {string: …} or {base64_string: …}, or what was parsed.
func (m *message) body() ([]byte, error) {
	if m.ParsedBody != nil {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		err := e.Encode(m.ParsedBody)
		return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
	}
	n := &m.Body
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	var b []byte
	var err error
	switch n.Kind {
	case 0:
		return nil, nil
	case yaml.ScalarNode:
		b, err = scalar(n)
	case yaml.MappingNode:
		var in struct {
			String yaml.Node `yaml:"string"`
			Base64 string    `yaml:"base64_string"`
		}
		if err = n.Decode(&in); err != nil {
			return nil, err
		}
		if in.Base64 != "" {
			b, err = unpacked64(in.Base64)
		} else if in.String.Kind == yaml.ScalarNode {
			b, err = scalar(&in.String)
		}
	default:
		return nil, fmt.Errorf("line %d: the body is neither text nor an object with string", n.Line)
	}
	if err != nil {
		return nil, err
	}
	return decoded(b, m.Headers["content-encoding"])
}

func scalar(n *yaml.Node) ([]byte, error) {
	switch n.Tag {
	case "!!null":
		return nil, nil
	case "!!binary", "!binary":
		return unpacked64(n.Value)
	}
	return []byte(n.Value), nil
}

func unpacked64(text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, fmt.Errorf("base64: %w", err)
	}
	return b, nil
}

// maxBody bounds what a compressed body may unpack to.
const maxBody = 64 << 20

// decoded unpacks a body as it came over the wire. One that the recorder has unpacked already, and left its header, is found by how it begins.
func decoded(b []byte, encoding string) ([]byte, error) {
	var r io.Reader
	var err error
	switch {
	case encoding == "gzip" && bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		r, err = gzip.NewReader(bytes.NewReader(b))
	case encoding == "deflate" && len(b) > 1 && b[0] == 0x78:
		r, err = zlib.NewReader(bytes.NewReader(b))
	case encoding == "br" || encoding == "zstd":
		if json.Valid(b) || bytes.Contains(b, []byte("data:")) {
			return b, nil
		}
		return nil, fmt.Errorf("the body is compressed as %s, which is not read; record it decoded", encoding)
	default:
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", encoding, err)
	}
	out, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(out) > maxBody {
		err = fmt.Errorf("it unpacks to more than %d bytes", maxBody)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", encoding, err)
	}
	return out, nil
}
