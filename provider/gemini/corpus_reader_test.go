package gemini_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/test/wiretest"
)

// reading is the result of the independent reader, with the parts of a whole reply in canonical
// JSON.
type reading struct {
	wiretest.Reading
	parts []string
}

type generateBody struct {
	Candidates []struct {
		Index   int `json:"index"`
		Content struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
		Finish json.RawMessage `json:"finishReason"`
	} `json:"candidates"`
	Feedback struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	RawUsage map[string]json.RawMessage `json:"usageMetadata"`
	Error    json.RawMessage            `json:"error"`
}

type generatePart struct {
	Text      *string `json:"text"`
	Thought   bool    `json:"thought"`
	Signature string  `json:"thoughtSignature"`
	Call      *struct {
		ID      string          `json:"id"`
		Name    string          `json:"name"`
		Args    json.RawMessage `json:"args"`
		More    bool            `json:"willContinue"`
		Partial []struct {
			Path   string          `json:"jsonPath"`
			String *string         `json:"stringValue"`
			Number json.RawMessage `json:"numberValue"`
			Bool   *bool           `json:"boolValue"`
		} `json:"partialArgs"`
	} `json:"functionCall"`
}

var pathStep = regexp.MustCompile(`\.(\w+)|\[(\d+)\]`)

// set sets the value at a path such as $.to[0].name. It appends to an existing text.
func set(root map[string]any, path string, value any) {
	var at any = root
	steps := pathStep.FindAllStringSubmatch(path, -1)
	for i, s := range steps {
		var child any
		var store func(any)
		if s[1] != "" {
			m := at.(map[string]any)
			child = m[s[1]]
			store = func(v any) { m[s[1]] = v }
		} else {
			list := at.(*[]any)
			n, _ := strconv.Atoi(s[2])
			for len(*list) <= n {
				*list = append(*list, nil)
			}
			child = (*list)[n]
			store = func(v any) { (*list)[n] = v }
		}
		if i == len(steps)-1 {
			old, isText := child.(string)
			if more, ok := value.(string); ok && isText {
				value = old + more
			}
			store(value)
			return
		}
		if child == nil {
			if child = any(map[string]any{}); steps[i+1][2] != "" {
				child = &[]any{}
			}
			store(child)
		}
		at = child
	}
}

// readAnswer reads an answer of generateContent or streamGenerateContent.
func readAnswer(body string) (reading, error) {
	var r reading
	thoughts := ""
	r.Reasoning = &thoughts
	var docs []json.RawMessage
	streamed := true
	switch trimmed := strings.TrimSpace(body); {
	case strings.HasPrefix(trimmed, "{"):
		docs, streamed = []json.RawMessage{json.RawMessage(trimmed)}, false
	case strings.HasPrefix(trimmed, "["):
		if err := json.Unmarshal([]byte(trimmed), &docs); err != nil {
			return r, err
		}
	default:
		for _, line := range strings.Split(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
			if data, ok := strings.CutPrefix(line, "data:"); ok {
				docs = append(docs, json.RawMessage(data))
			}
		}
	}
	reason := ""
	blocked := false
	var open map[string]any // the arguments of an open call
	var openName string
	finishOpen := func() {
		if open != nil {
			b, _ := json.Marshal(open)
			r.Calls = append(r.Calls, " "+openName+" "+wiretest.Canonical(b))
			open = nil
		}
	}
	for i, doc := range docs {
		var b generateBody
		if err := json.Unmarshal(doc, &b); err != nil {
			return r, fmt.Errorf("document %d: %w", i, err)
		}
		if len(b.Error) > 0 {
			r.Err = errorText(doc)
			return r, nil
		}
		blocked = blocked || b.Feedback.Block != ""
		n := func(name string) (n int) { json.Unmarshal(b.RawUsage[name], &n); return n }
		if b.RawUsage["promptTokenCount"] != nil {
			r.Usage = wiretest.Figures{Input: n("promptTokenCount") + n("toolUsePromptTokenCount"), Output: n("candidatesTokenCount") + n("thoughtsTokenCount"),
				Reasoning: n("thoughtsTokenCount"), CacheRead: n("cachedContentTokenCount")}
		}
		for _, c := range b.Candidates {
			if c.Index != 0 {
				continue
			}
			if len(c.Finish) > 0 {
				reason = strings.Trim(string(c.Finish), `"`)
			}
			for _, raw := range c.Content.Parts {
				var p generatePart
				if err := json.Unmarshal(raw, &p); err != nil {
					return r, fmt.Errorf("document %d: %w", i, err)
				}
				if !streamed {
					r.parts = append(r.parts, wiretest.Canonical(raw))
				}
				if p.Signature != "" {
					r.Kept = append(r.Kept, p.Signature)
				}
				switch {
				case p.Text != nil && p.Thought:
					thoughts += *p.Text
				case p.Text != nil:
					r.Text += *p.Text
				case p.Call != nil && p.Call.Name != "" && !p.Call.More:
					finishOpen()
					args := p.Call.Args
					if args == nil {
						args = json.RawMessage("{}")
					}
					r.Calls = append(r.Calls, p.Call.ID+" "+p.Call.Name+" "+wiretest.Canonical(args))
				case p.Call != nil && p.Call.Name != "":
					finishOpen()
					open, openName = map[string]any{}, p.Call.Name
				case p.Call != nil:
					for _, piece := range p.Call.Partial {
						switch {
						case piece.String != nil:
							set(open, piece.Path, *piece.String)
						case piece.Number != nil:
							set(open, piece.Path, json.Number(piece.Number))
						case piece.Bool != nil:
							set(open, piece.Path, *piece.Bool)
						}
					}
					if !p.Call.More {
						finishOpen()
					}
				}
			}
		}
	}
	finishOpen()
	switch reason {
	case "STOP", "1":
		r.Finish = "stop"
		if len(r.Calls) > 0 {
			r.Finish = "tool_calls"
		}
	case "MAX_TOKENS":
		r.Finish = "length"
	case "SAFETY":
		r.Finish = "content_filter"
	case "UNEXPECTED_TOOL_CALL", "MALFORMED_FUNCTION_CALL":
		r.Finish = "error"
	case "":
		r.Broken = !blocked
		r.Finish = "content_filter"
	default:
		return r, fmt.Errorf("an unknown reason %s", reason)
	}
	return r, nil
}

// errorText returns the text of an error body.
func errorText(body []byte) string {
	var e struct{ Error struct{ Message string } }
	if json.Unmarshal(body, &e) != nil || e.Error.Message == "" {
		return strings.TrimSpace(string(body))
	}
	return e.Error.Message
}
