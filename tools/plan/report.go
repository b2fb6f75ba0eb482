package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// entry is the outcome of one step.
type entry struct {
	Step int    `json:"step"`
	Tool string `json:"tool"`
	came
	Items *[]came `json:"items,omitempty"` // for a step with each
}

// came is the outcome of a call.
type came struct {
	Status string          `json:"status"`
	Result *string         `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// report returns the result of the plan: the JSON array, followed by the parts of the step results
// that are not text.
func (p *flow) report() (llm.ToolResult, error) {
	entries := make([]entry, len(p.steps))
	var media []llm.Part
	for i, n := range p.steps {
		e := entry{Step: i, Tool: n.Tool}
		status := n.settled()
		switch {
		case n.reason != "":
			e.came = note(status, n.reason)
		case n.Each == nil:
			// A step without each has exactly one call.
			e.came = n.runs[0].came(&media)
		default:
			items, failed := n.items(&media)
			e.Status = status
			e.Items = &items
			if failed > 0 {
				e.Error = fmt.Sprintf("%d of %d failed; see items.", failed, len(items))
			}
		}
		entries[i] = e
	}

	text, err := rendered(entries)
	if err != nil {
		return llm.ToolResult{}, err
	}
	res, err := toolrun.Result(text, entries)
	res.Parts = append(res.Parts, media...)
	return res, err
}

// items returns the outcomes of the calls of a step with each, and how many failed.
func (n *node) items(media *[]llm.Part) (items []came, failed int) {
	items = make([]came, len(n.runs))
	for i := range n.runs {
		items[i] = n.runs[i].came(media)
		if items[i].Status == statusError {
			failed++
		}
	}
	return items, failed
}

// note returns the outcome of a call or a step that was not executed.
func note(status, text string) came {
	if status == statusSkipped {
		return came{Status: status, Result: &text}
	}
	return came{Status: status, Error: text}
}

// came returns the outcome of the call, and appends its media.
func (r *runOf) came(media *[]llm.Part) came {
	switch {
	case r.skipped != "":
		return note(statusSkipped, r.skipped)
	case r.failed != "":
		return note(statusError, r.failed)
	}

	result := r.done.Result
	text := result.Text()
	for _, part := range result.Parts {
		if m, ok := part.(llm.Media); ok {
			*media = append(*media, m)
		}
	}
	// A model must not take an empty error for success.
	if r.done.Outcome != pawl.OutcomeOK {
		text = cmp.Or(text, "It failed and says nothing of it.")
		return came{Status: statusError, Error: text, Data: result.Data}
	}
	return came{Status: statusOK, Result: &text, Data: result.Data}
}

// rendered writes entries for the model. Data is left out because the text repeats it in the tool's
// own words. Long texts are shortened until all texts together fit into maxText. Short texts stay
// whole, and long texts get the space that they leave.
func rendered(entries []entry) (string, error) {
	// The caller returns the same entries as data, so they are copied down to what is shortened.
	entries = slices.Clone(entries)
	var texts []*string
	bare := func(c *came) {
		c.Data = nil
		if c.Result != nil {
			text := *c.Result
			c.Result = &text
			texts = append(texts, c.Result)
		} else if c.Error != "" {
			texts = append(texts, &c.Error)
		}
	}

	for i := range entries {
		e := &entries[i]
		bare(&e.came)
		if e.Items == nil {
			continue
		}
		items := slices.Clone(*e.Items)
		e.Items = &items
		for j := range items {
			bare(&items[j])
		}
	}

	most := share(texts, maxText)
	for _, t := range texts {
		*t = text.Middle(*t, most)
	}
	b, err := jsonform.Marshal(entries)
	return string(b), err
}

// share returns the length to which texts may extend, so that together they have at most total
// bytes.
func share(texts []*string, total int) int {
	lengths := make([]int, len(texts))
	for i, t := range texts {
		lengths[i] = len(*t)
	}
	slices.Sort(lengths)
	for i, n := range lengths {
		if rest := len(lengths) - i; n*rest > total {
			return total / rest
		}
		total -= n
	}
	return maxText
}
