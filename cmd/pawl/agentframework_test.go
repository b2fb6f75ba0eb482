package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// seedTools are the built-in tools that replace tools of agent.framework, with calls in its form:
// one with the arguments that were required there, and one with all arguments. The calls are
// executed in this order, one after another, because later calls use the effects of earlier calls.
// want is a part of the result.
var seedTools = []struct{ tool, args, want string }{
	{"remember", `{"content":"The office is in Oslo."}`, "Remembered as"},
	{"knowledge_search", `{"query":"leave"}`, "twelve days"},
	{"web_search", `{"query":"what is a pawl"}`, "ratchet"},
	{"schedule_create", `{"description":"Morning news","time":"08:00","recurrence":"daily","tools":[{"tool":"web_search","params":{"query":"news"}}]}`, "Morning news"},
	{"schedule_create", `{"description":"Weekly report","time":"8:5","recurrence":"weekly","day":"friday","tools":[],"synthesis_prompt":"Write the report."}`, "Weekly report"},
	{"schedule_create", `{"description":"Gym","time":"18:00","recurrence":"custom","day":"monday,wednesday","tools":[],"synthesis_prompt":"Remind me."}`, "Gym"},
	{"schedule_create", `{"description":"Rent","time":"09:00","recurrence":"monthly","day":"31","tools":[],"synthesis_prompt":"Pay."}`, "Rent"},
	{"schedule_create", `{"description":"Dentist","time":"23:59","recurrence":"once","tools":[],"synthesis_prompt":"Go."}`, "Dentist"},
	{"schedule_list", `{}`, "Morning news"},
	{"schedule_update", `{"description_query":"news","enabled":false}`, "Morning news"},
	{"schedule_update", `{"description_query":"news","enabled":true,"time":"07:30","recurrence":"weekly","day":"tue"}`, "Morning news"},
	{"schedule_update", `{"description_query":"report","day":"monday"}`, "Weekly report"},
	{"schedule_delete", `{"description_query":"rent"}`, "Rent"},
	{"shell_exec", `{"command":"echo hi"}`, "hi"},
	{"shell_exec", `{"command":"echo hi","timeout":60}`, "hi"},
	{"file_write", `{"path":"sub/note.txt","content":"a line\n"}`, "note.txt"},
	{"file_read", `{"path":"sub/note.txt"}`, "a line"},
	{"file_list", `{}`, "sub"},
	{"file_list", `{"path":""}`, "sub"},
	{"file_list", `{"path":"sub"}`, "note.txt"},
	{"file_stat", `{"path":"sub/note.txt"}`, "modified"},
	{"file_delete", `{"path":"sub/note.txt"}`, "note.txt"},
	{"http_fetch", `{"url":"SERVER"}`, "A page"},
	{"http_fetch", `{"url":"SERVER","max_chars":100}`, "A page"},
	{"data_parse", `{"content":"a,b\n1,x\n2,y"}`, `"count":2`},
	{"data_parse", `{"content":"[{\"a\":1}]","format":"json","limit":1000}`, `"count":1`},
	{"data_filter", `{"records":[{"a":1},{"a":2}],"where":[{"column":"a","op":">","value":1}]}`, `"count":1`},
	{"data_filter", `{"records":[{"a":"x"},{"a":"y"}],"where":[{"column":"a","op":"in","value":["x","z"]}]}`, `"count":1`},
	{"data_aggregate", `{"records":[{"a":1},{"a":2}],"metrics":[{"column":"a","op":"sum"}]}`, "sum_a"},
	{"data_aggregate", `{"records":[{"g":"x","a":1},{"g":"y","a":2}],"group_by":["g"],"metrics":[{"column":"a","op":"avg"}]}`, "avg_a"},
	{"data_transform", `{"records":[{"a":1,"b":2}]}`, `"count":1`},
	{"data_transform", `{"records":[{"a":1,"b":2},{"a":3,"b":4}],"select":["a"],"rename":{"a":"c"},"sort_by":"c","sort_desc":true,"limit":1}`, `"c":3`},
	{"skill_create", `{"name":"brew","description":"Makes coffee.","instructions":"Grind, pour."}`, "brew"},
	{"skill_create", `{"name":"tea","description":"Makes tea.","instructions":"Steep.","tags":["kitchen"],"tools":["shell_exec"],"model":"m","references":["brew"]}`, "tea"},
	{"skill_search", `{"query":"coffee"}`, "brew"},
	{"skill_update", `{"id":"brew","instructions":"Grind finely, pour."}`, "brew"},
	{"skill_update", `{"id":"tea","name":"green tea","description":"Makes green tea.","instructions":"Steep at 80.","tags":[],"tools":[],"model":"n","references":[]}`, "green tea"},
}

// seedNames are the names of the tools in existing prompts and stored runs.
const seedNames = "data_aggregate data_filter data_parse data_transform file_delete file_list file_read file_stat file_write http_fetch knowledge_search remember " +
	"schedule_create schedule_delete schedule_list schedule_update shell_exec skill_create skill_search skill_update web_search"

// Every tool of agent.framework exists under its name and accepts the old arguments without a
// repair.
func TestSeedTools(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, "A page.")
	}))
	defer page.Close()
	all := everyTool(t, "127.0.0.0/8")
	var names []string
	for _, row := range seedTools {
		if !slices.Contains(names, row.tool) {
			names = append(names, row.tool)
		}
		tool := all[row.tool]
		if tool == nil {
			t.Errorf("there is no tool %s", row.tool)
			continue
		}
		tool = tool.Clone()
		tool.NoRepair = true
		args := strings.ReplaceAll(row.args, "SERVER", page.URL)
		x := pawl.Toolsets{tool}.Execute(t.Context(), llm.ToolCall{ID: "c1", Name: row.tool, Args: json.RawMessage(args)})
		if x.Outcome != pawl.OutcomeOK || len(x.Repairs) > 0 || !strings.Contains(x.Result.Text(), row.want) {
			t.Errorf("%s %s: %s, repairs %q: %s; want %q in it", row.tool, args, x.Outcome, x.Repairs,
				x.Result.Text(), row.want)
		}
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != seedNames {
		t.Errorf("the rows are about %s; want %s", got, seedNames)
	}
	wrong := llm.ToolCall{ID: "c1", Name: "schedule_create",
		Args: []byte(`{"description":"x","time":"25:00","recurrence":"daily","tools":[]}`)}
	if x := (pawl.Toolsets{all["schedule_create"]}).Execute(t.Context(), wrong); x.Outcome == pawl.OutcomeOK {
		t.Error("as a control: a time that there is not is taken")
	}
}
