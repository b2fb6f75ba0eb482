package pawltest

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Exchange is one recorded request and its response. Its JSON form is a line of a recording.
type Exchange struct {
	Cassette  string `json:"cassette"`  // its recording
	Seq       int    `json:"seq"`       // its place in the recording, from 0
	Provider  string `json:"provider"`  // who served it
	API       string `json:"api"`       // Chat, Responses, or another
	Method    string `json:"method"`    // of HTTP
	Path      string `json:"path"`      // of the URL
	Streaming bool   `json:"streaming"` // the response is a stream
	// Continues is the Seq of the exchange whose calls this one answers. Nil means none.
	Continues *int `json:"continues"`
	Loop      bool `json:"loop"` // an exchange of the recording continues another
	Request   *struct {
		Body json.RawMessage `json:"body"`
	} `json:"request"` // nil means not recorded
	// Response is what the provider sent.
	Response struct {
		Status   int               `json:"status"`
		Headers  map[string]string `json:"headers"` // names in lower case
		Body     string            `json:"body"`
		BodyB64  string            `json:"body_b64"` // replaces Body if it is not text
		Fidelity string            `json:"fidelity"`
		// Not nil means that long base64 text was cut.
		Trimmed json.RawMessage `json:"trimmed_b64"`
	} `json:"response"`
	Info struct {
		Model     string         `json:"model"`
		ToolCalls []RecordedCall `json:"tool_calls"`
		Finish    []any          `json:"finish"` // words, or their numbers
		Tags      []string       `json:"tags"`
	} `json:"info"` // as read by the recorder
}

// RecordedCall is a call as the recorder read it.
type RecordedCall struct {
	ID   string          `json:"id"`   // empty where the API has none
	Name string          `json:"name"` // of the tool
	Args json.RawMessage `json:"args"` // a JSON string of the model's text (OpenAI), or an object
}

// Name names the exchange: "cassette#seq".
func (e *Exchange) Name() string { return fmt.Sprintf("%s#%d", e.Cassette, e.Seq) }

// Body returns the response's body.
func (e *Exchange) Body() ([]byte, error) {
	if e.Response.BodyB64 == "" {
		return []byte(e.Response.Body), nil
	}
	b, err := base64.StdEncoding.DecodeString(e.Response.BodyB64)
	if err != nil {
		return nil, fmt.Errorf("%s: body_b64: %w", e.Name(), err)
	}
	return b, nil
}

// Cassette is the exchanges of one recording, in order.
type Cassette struct {
	Name      string     // of the recording
	Exchanges []Exchange // of one recording
}

// LoadCassettes reads the recordings of api from dir/api.jsonl.gz: gzipped JSON lines, with the
// exchanges of a recording next to each other. If the file does not exist, the error is
// fs.ErrNotExist.
func LoadCassettes(dir, api string) ([]Cassette, error) {
	f, err := os.Open(filepath.Join(dir, api+".jsonl.gz"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	var all []Cassette
	r := bufio.NewReaderSize(z, 1<<16)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			var e Exchange
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("%s: line %d: %w", f.Name(), n, err)
			}
			if len(all) == 0 || all[len(all)-1].Name != e.Cassette {
				all = append(all, Cassette{Name: e.Cassette})
			}
			last := &all[len(all)-1]
			last.Exchanges = append(last.Exchanges, e)
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", f.Name(), n, err)
		}
	}
}

// Loops returns the tool loops of the recording: every path from an exchange that continues no
// other, through the exchanges that continue it, to a last one. A recording in which a step was
// tried twice has a path for each try. Exchanges outside a loop are omitted.
func (c Cassette) Loops() [][]Exchange {
	next := make([][]int, len(c.Exchanges))
	at := map[int]int{}
	for i, e := range c.Exchanges {
		at[e.Seq] = i
	}
	var roots []int
	for i, e := range c.Exchanges {
		if e.Continues == nil {
			roots = append(roots, i)
		} else if from, ok := at[*e.Continues]; ok && from < i {
			next[from] = append(next[from], i)
		}
	}
	var loops [][]Exchange
	var walk func(path []Exchange, i int)
	walk = func(path []Exchange, i int) {
		path = append(path[:len(path):len(path)], c.Exchanges[i])
		for _, j := range next[i] {
			walk(path, j)
		}
		if len(next[i]) == 0 && len(path) > 1 {
			loops = append(loops, path)
		}
	}
	for _, i := range roots {
		walk(nil, i)
	}
	return loops
}
