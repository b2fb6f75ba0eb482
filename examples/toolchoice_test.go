package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/openai"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
)

var update = flag.Bool("update", false, "write the requests of docs/tools.md again")

type query struct {
	Query string `json:"query" jsonschema:"words that the record has in it"`
	Limit int    `json:"limit,omitempty" jsonschema:"at most so many records"`
}

type record struct {
	ID string `json:"record_id" jsonschema:"such as user1"`
}

type figures struct {
	Data []float64 `json:"data"`
	Kind string    `json:"analysis_type" jsonschema:"sum, mean or spread"`
}

type none struct{}

// answering returns a tool with that name and description whose result is text.
func answering[In any](name, description, text string) *pawl.Tool {
	return pawl.Func(name, description, func(context.Context, In) (string, error) { return text, nil })
}

const (
	searchText  = "Search the database for records matching a query. Gives back IDs and names; get_record_details has the rest."
	detailsText = "Get all fields of one record by its ID."
)

var (
	searchRecords = answering[query]("search_database", searchText, `[{"id":"user1","name":"Alice"},{"id":"user3","name":"Carol"}]`)
	recordDetails = answering[record]("get_record_details", detailsText, `{"id":"user1","logins":42}`)
	analyzeData   = answering[figures]("analyze_data", "Compute statistics of numbers: sum, mean or spread.", `{"mean":29.5}`)
)

const workflow = `You analyze user data.

1. Use search_database to find records.
2. For each record use get_record_details.
3. Use analyze_data on the figures; never compute in your head.`

// moves are the ways to steer a model's choice of tool, each with a good and a bad agent.
var moves = []struct {
	name      string
	good, bad choice
}{
	{"description", choice{tools: []*pawl.Tool{searchRecords, answering[none]("list_tables", "List the tables of the database with their columns.", "users")}},
		choice{tools: []*pawl.Tool{answering[query]("search_database", "Searches stuff.", ""), answering[none]("list_tables", "Lists stuff.", "")}}},
	{"system text", choice{system: workflow, tools: []*pawl.Tool{searchRecords, recordDetails, analyzeData}},
		choice{system: "You are a helpful assistant.", tools: []*pawl.Tool{searchRecords, recordDetails, analyzeData}}},
	{"task", choice{task: "Find all active users and say how often they log in on average.", tools: []*pawl.Tool{searchRecords, recordDetails, analyzeData}},
		choice{task: "Check users.", tools: []*pawl.Tool{searchRecords, recordDetails, analyzeData}}},
	{"history", choice{asked: "Which users are active?", task: "Which of them logs in more often?", tools: []*pawl.Tool{searchRecords, recordDetails}},
		choice{asked: "Which users are active?", task: "Which of them logs in more often?", tools: []*pawl.Tool{searchRecords, recordDetails}, forget: true}},
	{"plan", choice{task: "Do your part.", plan: `{"phases":[{"worker":"data-analysis","goals":"Find the active users and the mean of their logins."},{"worker":"writer","goals":"Write it up for the board."}]}`,
		tools: []*pawl.Tool{searchRecords, analyzeData}},
		choice{task: "Do your part.", tools: []*pawl.Tool{searchRecords, analyzeData}}},
	{"availability", choice{task: "Add a user named Erin.", tools: []*pawl.Tool{searchRecords, answering[struct {
		Name string `json:"name"`
	}]("create_record", "Create a record. Search first: a name stands once.", "")}}, choice{task: "Add a user named Erin.", tools: []*pawl.Tool{searchRecords}}},
}

// choice is an agent and its question.
type choice struct {
	system, asked, task, plan string
	tools                     []*pawl.Tool
	forget                    bool // earlier turns are not sent
}

// request returns the body of the agent's last request, as the Chat Completions adapter sends it.
func (c choice) request(t *testing.T) []byte {
	t.Helper()
	m := script.New(script.Func(func(req *llm.Request) script.Turn {
		if c.asked != "" {
			return script.Call("search_database", `{"query":"active"}`)
		}
		return script.Say("Done.")
	}), script.Say("Alice and Carol."), script.Say("Done."))
	sim, err := pawltest.NewSimulator(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	if c.task == "" {
		c.task = "Who is active?"
	}
	a := &pawl.Agent{Model: openai.NewChat("gpt-6.1-terra", &openai.Options{BaseURL: sim.URL, Key: "k"}), Instructions: c.system}
	for _, tool := range c.tools {
		a.Tools = append(a.Tools, tool)
	}
	if c.forget {
		a.Middleware = []pawl.Middleware{history.DropPastToolCalls()}
	}
	from := &pawl.Result{}
	if c.plan != "" {
		from.Values = pawl.Values{team.PlanKey: json.RawMessage(c.plan)}
	}
	for _, said := range []string{c.asked, c.task} {
		if said == "" {
			continue
		}
		if from, err = a.Resume(t.Context(), from, llm.User(said)); err != nil {
			t.Fatal(err)
		}
	}
	all := sim.Received()
	return all[len(all)-1].Body
}

// written formats a body as the page shows it: each message and each tool on a line.
func written(t *testing.T, body []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		text := string(value)
		var list []json.RawMessage
		if json.Unmarshal(value, &list) == nil && len(list) > 0 {
			var items []string
			for _, one := range list {
				items = append(items, "  "+string(one))
			}
			text = "[\n" + strings.Join(items, ",\n") + "]"
		}
		lines = append(lines, fmt.Sprintf(" %q: %s", name, text))
	}
	return "{\n" + strings.Join(lines, ",\n") + "\n}"
}

var shown = regexp.MustCompile("(?s)<!-- request: ([a-z ]+), (good|bad) -->\n```json\n(.*?)\n```\n")

// The requests of docs/tools.md equal the adapter's requests for the agents above, split into
// lines.
func TestToolChoicePage(t *testing.T) {
	page, err := os.ReadFile("../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string][]byte{}
	for _, m := range moves {
		bodies[m.name+", good"], bodies[m.name+", bad"] = m.good.request(t), m.bad.request(t)
	}
	seen := map[string]bool{}
	made := shown.ReplaceAllStringFunc(string(page), func(block string) string {
		parts := shown.FindStringSubmatch(block)
		name := parts[1] + ", " + parts[2]
		if seen[name] = true; bodies[name] == nil {
			t.Errorf("the page shows %q, and there is no such agent", name)
			return block
		}
		return fmt.Sprintf("<!-- request: %s -->\n```json\n%s\n```\n", name, written(t, bodies[name]))
	})
	for name := range bodies {
		if !seen[name] {
			t.Errorf("the page does not show %q", name)
		}
	}
	if *update {
		if err := os.WriteFile("../docs/tools.md", []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(page), made); diff != "" {
		t.Errorf("docs/tools.md does not show what is sent; go test ./examples -update writes it again (-in the page, +sent):\n%s", diff)
	}
	for _, parts := range shown.FindAllStringSubmatch(made, -1) {
		var compact bytes.Buffer
		err := json.Compact(&compact, []byte(parts[3]))
		if err != nil || compact.String() != string(bodies[parts[1]+", "+parts[2]]) {
			t.Errorf("%s, %s: the lines are not the bytes that were sent: %v", parts[1], parts[2], err)
		}
	}
}

// The page is correct about each pair: the good request has the part that steers the choice, and
// the bad request lacks it.
func TestToolChoiceMoves(t *testing.T) {
	for name, want := range map[string]string{
		"description":  "get_record_details has the rest",
		"system text":  "never compute in your head",
		"task":         "how often they log in on average",
		"history":      `\"id\":\"user1\"`,
		"plan":         "STRATEGIC PLAN:",
		"availability": `"name":"create_record"`,
	} {
		for _, m := range moves {
			if m.name == name {
				good, bad := m.good.request(t), m.bad.request(t)
				if !bytes.Contains(good, []byte(want)) || bytes.Contains(bad, []byte(want)) {
					t.Errorf("%s: %q is to be in the good request alone:\n%s\n%s", name, want, good, bad)
				}
			}
		}
	}
}
