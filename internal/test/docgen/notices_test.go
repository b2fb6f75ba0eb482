package docgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const noticesPage = "docs/notices.md"

// notices are the codes of notices and their meanings, by the folder that emits them.
var notices = map[string]map[string]string{
	".": {
		"bad_call":         "The provider could not read its own reply, as after a call in a wrong form. The model is asked again.",
		"decision_expired": "An approval was not used in its time. The question is asked anew.",
		"decision_refused": "A decision does not answer the open question. The text has the reason; the question stays open.",
		"effect_unstated":  "Tools do not state their effect: their calls are never retried or cached, and wait for a person after a crash. The text names the tools.",
		"empty_answer":     "The answer was empty. The model is asked again.",
		"output_mended":    "The answer was repaired so that it fits its schema. The text lists the repairs.",
		"output_unfit":     "The answer does not fit its schema. `data` has the faults; the model is asked again.",
		"retry":            "A request of the model or an attempt of a call failed and is repeated.",
		"stalling":         "The model repeats itself: equal calls had equal results. It is warned.",
	},
	"durable": {
		"attempt": "A process executes the stored run again. What follows begins with its first event. `data` has the number of the attempt.",
	},
	"history": {
		"messages_cut":    "More of the conversation is left out of requests than before.",
		"summary_failed":  "Notes about the old part of the conversation could not be written. It is sent unchanged.",
		"window_edited":   "Results were put away so that the request fits the context window. `data` has the sizes.",
		"window_mark":     "The stored state of the window does not fit the transcript and is ignored.",
		"window_refused":  "The provider refused a request as too long. A shorter one follows.",
		"window_repeated": "New results repeat what equal calls have read before. `data` has `repeats` and `new`.",
		"window_thrash":   "The window fills again and again with results that were read before. `data` has `edits`, `ends` and `warned`.",
	},
	"internal/agentfile": {
		"driver": "`driver: auto` in the agent's file has taken this driver, for the reason in the text.",
	},
	"leak": {
		"calls_leaked": "Calls stood in the text of a reply and were made calls.",
	},
	"llm": {
		"healed": "A fault of the transcript was repaired before the request.",
	},
	"policy": {
		"fallback": "A model failed, and the next one of the list answers.",
		"guard":    "A guardrail acted. `data` has `guard`, `place` and `action`.",
	},
	"provider/anthropic": {
		"context_cleared": "The provider left out old parts of the conversation.",
		"message_held":    "Code of the model waits for results; messages behind it are sent with a later request.",
		"refusal":         "The provider explains why the model refuses.",
		"summary_failed":  "The provider wrote no summary. The conversation is sent whole.",
		"thinking_off":    "The model does not think in this reply, because it continues calls that were made without its thinking.",
	},
	"provider/internal/wire": {
		"cache_miss":      "The provider could not use its prompt cache. The text has the reason.",
		"finish":          "The reply ends with an unusual word. `data` has it as `reason`.",
		"media_not_taken": "The model takes no media in results. It reads notes in their place.",
		"retry":           "A request failed and is sent again after the time in the text.",
		"tool_left_out":   "The schema of a tool cannot be sent to this provider. The tool is not offered.",
	},
	"provider/openai": {
		"background":      "The server computes the reply in the background. `data` has its ID.",
		"background_lost": "The server has lost a reply in the background and is asked again.",
		"media_left_out":  "An image or a sound that the server generated is not a part of the reply.",
	},
	"react": {
		"DecisionExtractionFailed": "A reply of the driver `react` holds no decision. The model is asked again.",
		"DecisionMended":           "A decision was repaired, or cut after its end.",
		"DecisionValidationFailed": "A decision cannot be executed. The model is asked again.",
	},
	"server/internal/runs": {
		"outage":        "The provider of the model is away. The run waits and asks again by itself; `data` says since when, and when next.",
		"tools_skipped": "The request has tools that the servers of its API execute. They are not offered.",
		"unreadable":    "An event cannot be encoded and is left out.",
	},
	"team": {
		"handoff":        "Another agent takes the conversation over. `data` has `from`, `to` and `note`.",
		"strategic_plan": "The team has a plan. `data` has it.",
	},
	"tools/remember": {
		"memory_failed":   "The store or the model of memories failed. The run continues without them.",
		"memory_forgot":   "Memories were deleted to make room for new ones.",
		"memory_proposed": "Memories were stored after an answer.",
		"memory_used":     "Memories were recalled.",
	},
	"tools/todo": {
		"todo_open": "The answer leaves items of the list open.",
	},
}

// noticeCode matches the code of a notice.
var noticeCode = regexp.MustCompile(`^([a-z]+(_[a-z]+)*|Decision[A-Za-z]+)$`)

// noticeCodes returns the codes of notices in a file: the constants Notice…, the literals of a
// notice and of its event, and the calls of a function that emits one.
func noticeCodes(f *ast.File) (codes []string) {
	add := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		if code, err := strconv.Unquote(lit.Value); err == nil && noticeCode.MatchString(code) {
			codes = append(codes, code)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if strings.HasPrefix(n.Names[0].Name, "Notice") && len(n.Values) == 1 {
				add(n.Values[0])
			}
		case *ast.CompositeLit:
			if e := codeOf(n); e != nil {
				add(e)
			}
		case *ast.CallExpr:
			name := nameOf(n.Fun)
			if len(n.Args) > 1 && (name == "notice" || name == "refuse") {
				add(n.Args[0])
			}
		}
		return true
	})
	return codes
}

// codeOf returns the code of a literal of a notice, or of the event of one; nil means that it is
// none.
func codeOf(lit *ast.CompositeLit) (code ast.Expr) {
	isNotice := lit.Type != nil && nameOf(lit.Type) == "Notice"
	for _, e := range lit.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch nameOf(pair.Key) {
		case "Code":
			code = pair.Value
		case "Kind":
			isNotice = isNotice || nameOf(pair.Value) == "EventNotice"
		}
	}
	if !isNotice {
		return nil
	}
	return code
}

// nameOf returns the last name of an expression; "" means that it has none.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// emitted returns the codes of the project by the folder that emits them.
func emitted(t *testing.T) map[string][]string {
	t.Helper()
	const root = "../../.."
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		skipped := strings.HasPrefix(name, ".") && name != ".." ||
			slices.Contains([]string{"node_modules", "testdata", "test", "pawltest", "cmd", "examples", "bench"}, name)
		if entry.IsDir() {
			if skipped && path != root {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		all[folder] = append(all[folder], noticeCodes(f)...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range all {
		slices.Sort(all[folder])
		all[folder] = slices.Compact(all[folder])
	}
	return all
}

// TestNotices writes the page of notices. Each code that the project emits has a meaning there, and
// each meaning has its code.
func TestNotices(t *testing.T) {
	found := emitted(t)
	var b strings.Builder
	b.WriteString("<!-- Made by go test ./internal/test/docgen -run Notices -update. -->\n\n# Notices\n\n" +
		"An event of the kind `notice` says what happened besides the conversation. Programs read its `code`; its\n" +
		"`text` is for people and may change. A provider's error that is repaired at once has the error's code.\n" +
		"Other middleware may emit codes of its own.\n\n| code | meaning | from |\n|---|---|---|\n")
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		for _, code := range found[folder] {
			if notices[folder][code] == "" {
				t.Errorf("%s emits %s, which has no meaning in notices", folder, code)
			}
			name := folder
			if folder == "." {
				name = "pawl"
			}
			fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", code, notices[folder][code], name)
		}
	}
	for folder, codes := range notices {
		for code := range codes {
			if !slices.Contains(found[folder], code) {
				t.Errorf("%s does not emit %s", folder, code)
			}
		}
	}
	if !t.Failed() {
		current(t, noticesPage, b.String())
	}
}

// The control: each form of a notice is found, and what looks alike is not.
func TestNoticesAreFound(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "", `package p
const NoticeOne = "one"
var a = &llm.Notice{Code: "two", Text: "x"}
var b = Event{Kind: EventNotice, Code: "three"}
func f() { w.notice("four", "x"); return refuse("five", "x") }
var no = Finding{Code: "six"}
const Other = "seven"
func g() { t.notice("there is no such thing", "x"); note("eight", "x") }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"one", "two", "three", "four", "five"}
	if got := noticeCodes(f); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
