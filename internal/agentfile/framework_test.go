package agentfile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/outside"
)

// frameworkBase is a document of agent.framework/v2; a row of the table changes one thing in it.
const frameworkBase = `apiVersion: agent.framework/v2
kind: Agent
metadata: {name: analyst}
resources:
  inference_gateways:
    - name: llm
      type: OpenAIGateway
      config: {model: gpt-6.1-terra}
  tools:
    - name: search
      type: command
      config: {description: Searches., run: [cat], effect: read, input: {type: object, properties: {q: {type: integer}}}}
    - {name: bare, type: command, config: {description: Does., run: [cat]}}
  subscribers: [{name: log, type: LoggingSubscriber}]
spec:
  tools: [search]
  planner:
    type: ReActPlanner
    config:
      inference_gateway: llm
`

// frameworkManager is the same of kind ManagerAgent, with two workers.
const frameworkManager = `apiVersion: agent.framework/v2
kind: ManagerAgent
metadata: {name: lead}
resources: {inference_gateways: [{name: llm, type: OpenAIGateway, config: {model: gpt-6.1-terra}}]}
spec:
  workers: [{name: one, config_path: one.yaml}, {name: two, config_path: sub/two.yaml}]
  planner:
    type: StrategicPlanner
    config:
      inference_gateway: llm
`

// frameworkRow is a key of agent.framework/v2: its effect, a document with it, and a proof.
type frameworkRow struct {
	key, state, note string
	base             string // empty means frameworkBase
	old, new         string // new stands for old
	see              func(a *agentfile.Agent) any

	// the value that see returns or, for a refused or reported key, a part of the finding
	want any
}

func cfg(text string) string { return "      inference_gateway: llm\n      " + text + "\n" }

const gate = "      inference_gateway: llm\n"

// spaced shows values with a space between them.
func spaced(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

func rounds(a *agentfile.Agent) any { return *a.Limits.Rounds }

var frameworkRows = []frameworkRow{
	{"`apiVersion`", "supported", "must be agent.framework/v2; theirs is not checked", "", "agent.framework/v2", "agent.framework/v1", nil, "error: \"agent.framework/v1\" is none of them"},
	{"`kind`: Agent, ManagerAgent", "supported", "other kinds (Flow, ToolRegistry) are refused", "", "kind: Agent", "kind: Flow", nil, "error: \"Flow\" is none of them"},
	{"`metadata.name`", "supported", "required", "", "{name: analyst}", "{}", nil, "error: the key name is missing"},
	{"`metadata.description`, `.version`", "accepted and reported", "not sent", "", "{name: analyst}", "{name: analyst, description: D, version: 1.0.0}", nil, "warning: description and version are for people"},
	{"`resources.inference_gateways[]`", "supported", "an unknown name is an error; theirs became None", "", gate, "      inference_gateway: lmm\n", nil, `error: no gateway is named "lmm" (did you mean llm?)`},
	{"gateway `OpenAIGateway`", "supported", "Chat Completions, streamed, with retries", "", "", "", func(a *agentfile.Agent) any { return a.Model[0].Name }, "openai-chat:gpt-6.1-terra"},
	{"gateway `GoogleAIGateway`", "supported", "with tools; key and address from the provider's variables", "", "type: OpenAIGateway\n      config: {model: gpt-6.1-terra}", "type: GoogleAIGateway\n      config: {model: models/gemini-2.5-pro}", func(a *agentfile.Agent) any { return a.Model[0].Name }, "gemini:gemini-2.5-pro"},
	{"gateway `AnthropicGateway`", "supported", "their documents have it, their code does not", "", "type: OpenAIGateway\n      config: {model: gpt-6.1-terra}", "type: AnthropicGateway\n      config: {model: claude-sonnet-5-5}", func(a *agentfile.Agent) any { return a.Model[0].Name }, "anthropic:claude-sonnet-5-5"},
	{"gateway `MockInferenceGateway`", "supported", "says one sentence; tools are passed and not called", "", "type: OpenAIGateway\n      config: {model: gpt-6.1-terra}", "type: MockInferenceGateway", func(a *agentfile.Agent) any { return a.Model[0].Name }, "mock"},
	{"gateway `model`", "supported", "default gpt-6-luna", "", "{model: gpt-6.1-terra}", "{}", func(a *agentfile.Agent) any { return a.Model[0].Name }, "openai-chat:gpt-6-luna"},
	{"gateway `api_key`", "supported", "as ${NAME}: the variable is read when the agent is built", "", "{model: gpt-6.1-terra}", "{api_key: \"${OPENAI_API_KEY}\"}", func(a *agentfile.Agent) any { return a.Model[0].KeyEnv }, "OPENAI_API_KEY"},
	{"gateway `api_key`, written out", "refused", "a key has no place in a file", "", "{model: gpt-6.1-terra}", "{api_key: sk-abc}", nil, "error: a key has no place in a file"},
	{"gateway `base_url`", "supported", "", "", "{model: gpt-6.1-terra}", "{base_url: \"http://localhost:1/v1\"}", func(a *agentfile.Agent) any { return a.Model[0].BaseURL }, "http://localhost:1/v1"},
	{"gateway `temperature`", "supported", "default 0", "", "", "", func(a *agentfile.Agent) any { return *a.Settings.Temperature }, 0.0},
	{"gateway `temperature: null`", "supported", "nothing is sent", "", "{model: gpt-6.1-terra}", "{temperature: null}", func(a *agentfile.Agent) any { return a.Settings.Temperature == nil }, true},
	{"gateway `use_function_calling`", "accepted and reported", "the planner's decides; theirs needed both", "", "{model: gpt-6.1-terra}", "{use_function_calling: true}", nil, "warning: the planner's use_function_calling decides"},
	{"gateway `tool_choice`: auto, none, required", "supported", "forced for the first request only; theirs could never end", "", "{model: gpt-6.1-terra}", "{tool_choice: required}", func(a *agentfile.Agent) any { return a.Choice[0] }, "required"},
	{"gateway `tool_choice`: the name of a tool", "supported", "theirs sent the bare name, which the API refuses", "", "{model: gpt-6.1-terra}", "{tool_choice: search}", func(a *agentfile.Agent) any { return a.Choice[0] }, "search"},
	{"gateway `tool_choice`: object", "supported", "also as JSON text, and in OPENAI_TOOL_CHOICE", "", "{model: gpt-6.1-terra}", "{tool_choice: {type: function, function: {name: search}}}", func(a *agentfile.Agent) any { return a.Choice[0] }, "search"},
	{"gateway, any other key", "refused", "`max_tokens` made theirs drop the whole block", "", "{model: gpt-6.1-terra}", "{max_tokens: 10}", nil, `error: there is no key "max_tokens"`},
	{"`resources.tools[]`", "supported", "types command and http, with the keys of docs/outside.md; an unknown name in `spec.tools` or `tool_descriptions` is an error, theirs was skipped", "", "tools: [search]", "tools: [serch]", nil, `error: no tool is named "serch" (did you mean search?)`},
	{"`resources.tools[]` of a Python class", "refused", "", "", "type: command\n", "type: WebSearchTool\n", nil, `error: there is no tool of type "WebSearchTool"`},
	{"`resources.subscribers[]`, `spec.subscribers[]`", "accepted and reported", "no effect: `pawl run --json` prints every event; names are checked", "", "", "", nil, "warning: subscribers have no effect"},
	{"`spec.policies.$preset`: simple", "supported", "10 rounds", "", "spec:\n", "spec:\n  policies: {$preset: simple}\n", rounds, 10},
	{"`spec.policies.$preset`: with_hitl", "supported", "15 rounds; writes wait, as they do by default", "", "spec:\n", "spec:\n  policies: {$preset: with_hitl}\n", rounds, 15},
	{"`spec.policies.$preset`: with_checkpoints", "accepted and reported", "20 rounds; --save keeps a run however it ends", "", "spec:\n", "spec:\n  policies: {$preset: with_checkpoints}\n", nil, "warning: checkpoints have no effect"},
	{"`spec.policies.$preset`: manager_with_followups", "supported", "of managers", "", "spec:\n", "spec:\n  policies: {$preset: manager_with_followups}\n", nil, "error: manager_with_followups is a preset of managers"},
	{"`spec.policies.completion`", "accepted and reported", "words in results end no run: theirs stopped at \"unsuccessful\"", "", "spec:\n", "spec:\n  policies: {completion: {type: Default, config: {indicators: [done], check_final_response: true, operation_types: [x], check_response_validation: true, history_depth: 3}}}\n", nil, "warning: words do not end a run"},
	{"`spec.policies.termination` `max_iterations`", "supported", "rounds, exactly; theirs made one request more", "", "spec:\n", "spec:\n  policies: {$preset: simple, termination: {type: Default, config: {max_iterations: 3}}}\n", rounds, 3},
	{"`spec.policies.termination` `terminal_tools`", "supported", "the tool runs, then the run stops; theirs stopped before", "", "spec:\n", "spec:\n  policies: {termination: {type: Default, config: {terminal_tools: [search]}}}\n", func(a *agentfile.Agent) any { return a.Terminal[0] }, "search"},
	{"`spec.policies.termination` `require_terminal_tool`", "refused", "", "", "spec:\n", "spec:\n  policies: {termination: {type: Default, config: {require_terminal_tool: true}}}\n", nil, "error: a run can also end by an answer"},
	{"`spec.policies.termination` `check_completion`", "accepted and reported", "", "", "spec:\n", "spec:\n  policies: {termination: {type: Default, config: {check_completion: true}}}\n", nil, "warning: words do not end a run"},
	{"`spec.policies.termination` `on_max_iterations`: return_partial", "supported", "the model is asked for an answer", "", "spec:\n", "spec:\n  policies: {termination: {type: Default, config: {on_max_iterations: return_partial}}}\n", func(a *agentfile.Agent) any { return a.Limits.AtLimit }, "answer"},
	{"`spec.policies.termination` `on_max_iterations`: error", "accepted and reported", "status 4 either way", "", "spec:\n", "spec:\n  policies: {termination: {type: Default, config: {on_max_iterations: error}}}\n", nil, "warning: a limit is never reported as success"},
	{"`spec.policies.loop_prevention` `repetition_threshold`", "supported", "", "", "spec:\n", "spec:\n  policies: {loop_prevention: {type: Default, config: {enabled: true, repetition_threshold: 4}}}\n", func(a *agentfile.Agent) any { return *a.Limits.Repeats }, 4},
	{"`spec.policies.loop_prevention` `enabled: false`", "refused", "repetition is always looked for", "", "spec:\n", "spec:\n  policies: {loop_prevention: {type: Default, config: {enabled: false}}}\n", nil, "error: repetition is always looked for"},
	{"`spec.policies.loop_prevention` `action_window`, `observation_window`, `check_completion_in_loop`, `on_stagnation`", "accepted and reported", "", "", "spec:\n", "spec:\n  policies: {loop_prevention: {type: Default, config: {action_window: 5, observation_window: 5, check_completion_in_loop: true, on_stagnation: stop}}}\n", nil, "warning: only repetition_threshold counts"},
	{"`spec.policies.hitl` `enabled: false`", "supported", "no call waits", "", "spec:\n", "spec:\n  policies: {hitl: {type: Default, config: {enabled: false}}}\n", func(a *agentfile.Agent) any { return a.Approve.Else }, "allow"},
	{"`spec.policies.hitl` `scope`: writes, all", "supported", "an approval is for one call with its arguments; theirs was for the tool", "", "spec:\n", "spec:\n  policies: {hitl: {type: Default, config: {enabled: true, scope: all}}}\n", func(a *agentfile.Agent) any { return a.Approve.Else }, "ask"},
	{"`spec.policies.hitl` `write_tools`", "supported", "", "", "spec:\n", "spec:\n  policies: {hitl: {type: Default, config: {write_tools: [search]}}}\n", func(a *agentfile.Agent) any { return a.Approve.Ask[0] }, "search"},
	{"`spec.policies.checkpoint`", "accepted and reported", "", "", "spec:\n", "spec:\n  policies: {checkpoint: {type: Default, config: {enabled: true, checkpoint_after_iterations: 5, checkpoint_on_operations: [x], checkpoint_on_tools: [search]}}}\n", nil, "warning: checkpoints have no effect"},
	{"`spec.policies.follow_up`", "supported", "of managers: max_phases", frameworkManager, "spec:\n", "spec:\n  policies: {follow_up: {type: Default, config: {enabled: true, max_phases: 5, check_completion: true, stop_on_completion: true}}}\n", func(a *agentfile.Agent) any { return *a.Team.MaxPhases }, 5},
	{"`spec.planner.type`", "supported", "an unknown one is an error", "", "ReActPlanner", "ReactPlaner", nil, `error: there is no planner of type "ReactPlaner" (did you mean ReActPlanner?)`},
	{"`spec.planner.config`, any other key", "refused", "theirs dropped the whole block, or swallowed it", "", gate, cfg("max_iteration: 3"), nil, `error: there is no key "max_iteration" (did you mean max_iterations?)`},
	{"ReActPlanner `tool_descriptions`", "supported", "an allow-list; the model receives the description", "", gate, cfg("tool_descriptions: [{name: bare, description: Told.}]"), func(a *agentfile.Agent) any {
		return spaced(len(a.Tools), a.Tools[0].Command.Name, a.Tools[0].Command.Description)
	}, "1 bare Told."},
	{"ReActPlanner `tool_descriptions[].args`", "supported", "of a tool without a schema: each is a text, and required", "", gate, cfg("tool_descriptions: [{name: bare, args: [a, b]}]"), func(a *agentfile.Agent) any { return string(a.Tools[0].Command.Input) }, `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"],"type":"object"}`},
	{"ReActPlanner `tool_descriptions[].args` of a tool with a schema", "accepted and reported", "the schema stands; args selects among its arguments, which keep their types", "", gate, cfg("tool_descriptions: [{name: search, args: [q]}]"), nil, "warning: the schema of search stands: args selects q of its arguments"},
	{"ReActPlanner `tool_descriptions[].args` that the schema does not have", "refused", "", "", gate, cfg("tool_descriptions: [{name: search, args: [a]}]"), nil, "error: the schema of search has no argument a"},
	{"ReActPlanner `tool_descriptions[]` without args", "supported", "the tool's own schema is taken", "", gate, cfg("tool_descriptions: [{name: search}]"), func(a *agentfile.Agent) any { return string(a.Tools[0].Command.Input) }, `{"properties":{"q":{"type":"integer"}},"type":"object"}`},
	{"ReActPlanner `tool_descriptions[]` without args or schema", "accepted and reported", "an object without properties", "", gate, cfg("tool_descriptions: [{name: bare}]"), nil, "warning: bare has neither args nor a schema"},
	{"ReActPlanner `max_iterations`", "supported", "rounds, unless a policy says; theirs did not read it", "", gate, cfg("max_iterations: 7"), rounds, 7},
	{"ReActPlanner `system_prompt`", "supported", "", "", gate, cfg("system_prompt: Be brief."), func(a *agentfile.Agent) any { return a.Instructions }, "Be brief."},
	{"ReActPlanner `terminal_tools`", "supported", "run, then stop", "", gate, cfg("terminal_tools: [search]"), func(a *agentfile.Agent) any { return a.Terminal[0] }, "search"},
	{"ReActPlanner `use_llm_termination`", "accepted and reported", "", "", gate, cfg("use_llm_termination: false"), nil, "warning: a model ends a run by answering"},
	{"ReActPlanner `use_function_calling: true`", "supported", "driver native", "", gate, cfg("use_function_calling: true"), func(a *agentfile.Agent) any { return a.Driver }, "native"},
	{"ReActPlanner `use_function_calling: false`", "supported", "driver react, which is the default; bad decisions are asked for again", "", "", "", func(a *agentfile.Agent) any { return a.Driver }, "react"},
	{"ReActPlanner `max_parallel_tool_calls`", "supported", "calls a step; the model is informed of the rest, theirs was not", "", gate, cfg("max_parallel_tool_calls: 3"), func(a *agentfile.Agent) any { return *a.Limits.CallsPerStep }, 3},
	{"ReActPlanner `history_filter`: default, worker, orchestrator", "supported", "all, this turn, 8 turns", "", gate, cfg("history_filter: worker"), func(a *agentfile.Agent) any { return *a.History.Turns }, 1},
	{"WorkerRouterPlanner `rules`, `default_worker`, `system_prompt`, `worker_keys`", "supported", "rules by words, then the model, then the default; a worker that is not there is asked for again", frameworkManager, "StrategicPlanner\n    config:\n" + gate, "WorkerRouterPlanner\n    config:\n" + cfg("rules: [{worker: one, include: [a], exclude: [b]}]\n      worker_keys: [one]\n      default_worker: two\n      system_prompt: P\n      log_details: true"), func(a *agentfile.Agent) any {
		return spaced(a.Team.Manager, a.Team.Rules, a.Team.Default, a.Team.Prompt, len(a.Team.Workers))
	}, "router [{one [a] [b]}] two P 2"},
	{"WorkerRouterPlanner without `inference_gateway`", "supported", "with rules: the model is never asked", frameworkManager, "StrategicPlanner\n    config:\n" + gate, "WorkerRouterPlanner\n    config: {rules: [{worker: one}]}\n", func(a *agentfile.Agent) any { return a.Model[0].Name }, "none"},
	{"StrategicPlanner `worker_keys`, `planning_prompt`", "supported", "a plan of phases, held to its form; a failed phase stops the team, theirs went on. Answers that are no plan are asked for again, theirs went to the first worker", frameworkManager, gate, cfg("worker_keys: [two]\n      planning_prompt: P"), func(a *agentfile.Agent) any {
		return spaced(a.Team.Manager, a.Team.Workers[0].Name, len(a.Team.Workers), a.Team.Prompt)
	}, "strategic two 1 P"},
	{"StrategicDecomposerPlanner `worker_keys`, `planning_prompt`", "supported", "the same, one level below: it sees the plan above it", frameworkManager, "StrategicPlanner", "StrategicDecomposerPlanner", func(a *agentfile.Agent) any { return a.Team.Manager }, "strategic"},
	{"ManagerScriptPlanner `worker_specs`, `planning_prompt`", "supported", "direct steps are calls of the worker's tools, with their arguments; guided ones are tasks. A worker's tools that are not there are an error", frameworkManager, "StrategicPlanner\n    config:\n" + gate, "ManagerScriptPlanner\n    config:\n" + cfg("worker_specs: [{worker: one, description: D, tools: [x]}]"), func(a *agentfile.Agent) any {
		return spaced(a.Team.Manager, a.Team.Workers[0].Description, a.Team.Workers[0].Tools)
	}, "script D [x]"},
	{"`default_worker` of other planners than WorkerRouterPlanner", "accepted and reported", "each phase and step names a worker", frameworkManager, "StrategicPlanner\n    config:\n" + gate, "ManagerScriptPlanner\n    config:\n" + cfg("default_worker: one"), nil, "warning: no default is needed"},
	{"`history_filter` of managers", "accepted and reported", "the end of the conversation, at most 4,000 characters", frameworkManager, gate, cfg("history_filter: orchestrator"), nil, "warning: a manager receives the end of the conversation"},
	{"`manager_worker_key`", "accepted and reported", "a manager has one name", frameworkManager, "StrategicPlanner\n    config:\n" + gate, "ManagerScriptPlanner\n    config:\n" + cfg("manager_worker_key: k"), nil, "warning: a manager has one name"},
	{"`log_details`", "accepted and reported", "", frameworkManager, "StrategicPlanner\n    config:\n" + gate, "WorkerRouterPlanner\n    config:\n" + cfg("log_details: true"), nil, "warning: logging has no switch"},
	{"a planner's worker that there is not", "refused", "theirs was skipped, or failed later", frameworkManager, gate, cfg("worker_keys: [won]"), nil, `error: no worker is named "won" (there are: one, two)`},
	{"LLMRouterPlanner `tool_specs`, `system_prompt`", "supported", "the model must choose one tool, once", "",
		"ReActPlanner\n    config:\n" + gate, "LLMRouterPlanner\n    config:\n" + cfg("tool_specs: [{tool: search, args: [q]}]\n      system_prompt: P"), func(a *agentfile.Agent) any { return spaced(a.Choice, *a.Limits.Rounds, len(a.Tools)) }, "[required] 1 1"},
	{"LLMRouterPlanner `default_model_dir`", "refused", "no tool gets an argument that the model did not write", "", "ReActPlanner\n    config:\n" + gate, "LLMRouterPlanner\n    config:\n" + cfg("default_model_dir: d"), nil, "error: no tool gets an argument"},
	{"SingleActionPlanner `tool_name`, `tool_args`, `terminal`", "supported", "no model is asked", "", "ReActPlanner\n    config:\n" + gate, "SingleActionPlanner\n    config: {tool_name: search, tool_args: {q: 1}}\n", func(a *agentfile.Agent) any { return spaced(a.Model[0].Name, a.Terminal) }, "script:SingleActionPlanner [search]"},
	{"StaticPlanner `keywords`", "supported", "calls the tool mock_search, which must be a resource; no model is asked", "", "ReActPlanner\n    config:\n" + gate, "StaticPlanner\n    config: {keywords: [look]}\n", nil, "error: StaticPlanner calls the tool mock_search, which is not among the tools"},
	{"ChatPlanner `system_prompt`, `max_history_messages`", "supported", "a model without tools", "", "ReActPlanner\n    config:\n" + gate, "ChatPlanner\n    config:\n" + cfg("max_history_messages: 6"), func(a *agentfile.Agent) any { return spaced(*a.History.Turns, len(a.Tools)) }, "3 0"},
	{"MathPlanner", "refused", "", "", "ReActPlanner", "MathPlanner", nil, `error: there is no planner of type "MathPlanner"`},
	{"`spec.memory.$preset`, `namespace`, `agent_key`", "accepted and reported", "--save and the set remember keep what there is to keep", "", "spec:\n", "spec:\n  memory: {$preset: worker, namespace: n, agent_key: k}\n", nil, "warning: memory has no effect"},
	{"`spec.memory.type`, `config`", "accepted and reported", "", "", "spec:\n", "spec:\n  memory: {type: InMemory, config: {agent_key: k}}\n", nil, "warning: memory has no effect"},
	{"`spec.tools[]`", "supported", "the tools without tool_descriptions", "", "tools: [search]", "tools: [search, bare]", func(a *agentfile.Agent) any { return len(a.Tools) }, 2},
	{"`spec.workers[]` `name`, `config_path`", "supported", "relative to this file, in its folder or below", frameworkManager, "", "", func(a *agentfile.Agent) any {
		return spaced(len(a.Team.Workers), a.Team.Workers[1].Name, a.Team.Workers[1].Agent().Name)
	}, "2 two second"},
	{"`spec.workers[].config_path` that leads out", "refused", "", frameworkManager, "one.yaml", "../one.yaml", nil, "error: ../one.yaml leads out of the folder of this file"},
	{"`${NAME}`, `${NAME:-default}`", "supported", "in values, after parsing; agent.framework replaced them in the text, before. An unset variable is an error; agent.framework left it in place", "", "model: gpt-6.1-terra", "model: \"${NO_SUCH:-gpt-5}\"", func(a *agentfile.Agent) any { return a.Model[0].Name }, "openai-chat:gpt-5"},
}

// write puts a row's document and the workers into a folder.
func (row frameworkRow) write(t *testing.T, dir string) string {
	t.Helper()
	text := frameworkBase
	if row.base != "" {
		text = row.base
	}
	if row.old != "" && !strings.Contains(text, row.old) {
		t.Fatalf("%s: the document has no %q", row.key, row.old)
	}
	text = strings.Replace(text, row.old, row.new, 1)
	for name, text := range map[string]string{"agent.yaml": text, "one.yaml": "agent: first\nmodel: openai:gpt-6.1-terra\n", "sub/two.yaml": "agent: second\nmodel: openai:gpt-6.1-terra\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "agent.yaml")
}

// Every row of docs/agent-framework.md is as it says.
func TestFrameworkRows(t *testing.T) {
	var page strings.Builder
	page.WriteString(frameworkHead)
	for _, row := range frameworkRows {
		fmt.Fprintf(&page, "| %s | %s | %s |\n", row.key, row.state, row.note)
		t.Run(row.key, func(t *testing.T) {
			path := row.write(t, t.TempDir())
			f, err := agentfile.Load(path, &agentfile.LoadOptions{Getenv: environment})
			all := agentfile.FindingsOf(err)
			for _, a := range f.Agents {
				all = append(all, a.Warnings()...)
			}
			if row.see != nil {
				if err != nil {
					t.Fatal(err)
				}
				if got := row.see(f.Agents[0]); got != row.want {
					t.Errorf("got %v, want %v", got, row.want)
				}
				return
			}
			want := row.want.(string)
			warning := strings.HasPrefix(want, "warning: ")
			if warning != (row.state == "accepted and reported") || warning && err != nil || !warning && err == nil {
				t.Errorf("the row is %s: got %v", row.state, err)
			}
			for _, one := range all {
				if strings.Contains(one.Error(),
					strings.TrimPrefix(strings.TrimPrefix(want, "warning: "), "error: ")) && one.Warning() == warning && one.Line > 0 {
					return
				}
			}
			t.Errorf("no finding with %s and a place in %v", want, all)
		})
	}
	current(t, "../../docs/agent-framework.md", []byte(page.String()))
}

const frameworkHead = `<!-- Made from the rows that internal/agentfile/framework_test.go tries. Change them there, then: make docs -->

# Files of kind agent.framework/v2

Files of the Python framework agent.framework are read unchanged: ` + "`pawl check`" + `, ` + "`pawl run`" + ` and ` + "`pawl chat`" + `
accept them. The document's ` + "`apiVersion`" + ` identifies the form. Its settings become pawl's own keys ([yaml.md](yaml.md)),
which ` + "`pawl check --explain`" + ` shows. A key without an effect is reported. A key that would have another meaning is
refused. Mistakes that the Python loader ignores (an unknown key, or an unknown tool, gateway or worker) are errors with
their position. History is sent with the roles of its messages, and not as text. An [example](../examples/agentframework).

| key | support | notes |
|---|---|---|
`

// echo is a program that returns its input.
func echo(_ context.Context, p outside.Process) (outside.Program, error) {
	return func(context.Context) (outside.Exit, error) { return outside.Exit{Stdout: p.Stdin}, nil }, nil
}

// The model is sent the tool's own schema: args selects arguments and keeps their types.
func TestFrameworkArgsAreSent(t *testing.T) {
	schema := `{type: object, properties: {q: {type: integer}, n: {type: number}, must: {type: boolean}}, required: [must]}`
	text := strings.Replace(frameworkBase, gate, "      use_function_calling: true\n"+cfg("tool_descriptions: [{name: search, args: [q]}]"), 1)
	text = strings.Replace(text, "{type: object, properties: {q: {type: integer}}}", schema, 1)
	got, err := parse(t, text).Agents[0].Explain(t.Context(), &agentfile.Options{Getenv: environment}, "Go.")
	if err != nil {
		t.Fatal(err)
	}
	want := `"properties":{"must":{"type":"boolean"},"q":{"type":"integer"}},"required":["must"]`
	if !strings.Contains(string(got.Body), want) {
		t.Errorf("got %s\nwant %s in it", got.Body, want)
	}
}

// An address that is given and empty is an error; an address that is not given is the provider's
// own.
func TestEmptyAddress(t *testing.T) {
	for _, tt := range []struct{ model, want string }{
		{"{name: openai:m, key_env: K}", ""},
		{"{name: openai:m, base_url: '${NONE:-}', key_env: K}", "the address is empty (leave the key out for the provider's own address)"},
		{"[{name: openai:m}, {name: groq:m, base_url: '', key_env: K}]", "the address is empty"},
	} {
		f := parse(t, "agent: a\nmodel: "+tt.model+"\n")
		built, err := f.Agents[0].Build(t.Context(), &agentfile.Options{Getenv: func(name string) string {
			return map[string]string{"K": "secret"}[name]
		}})
		if err == nil {
			err = built.Agent.Check(t.Context())
			built.Close()
		}
		if err == nil != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.model, err, tt.want)
		}
	}
}

// A model computes its replies in the background where its API can.
func TestBackground(t *testing.T) {
	explained := func(model string) (string, error) {
		got, err := parse(t, "agent: a\nmodel: "+model+"\n").Agents[0].Explain(t.Context(), &agentfile.Options{Getenv: environment}, "Go.")
		if err != nil {
			return "", err
		}
		return string(got.Body), nil
	}
	if body, err := explained("{name: openai:m, background: true}"); err != nil || !strings.Contains(body, `"background":true,"store":true`) {
		t.Errorf("the request does not ask for it: %s, %v", body, err)
	}
	if body, err := explained("{name: openai:m}"); err != nil || strings.Contains(body, "background") {
		t.Errorf("the request asks for it: %s, %v", body, err)
	}
	const want = "background: only openai: computes replies in the background"
	if _, err := explained("{name: openai-chat:m, background: true}"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// The settings of a model's prompt cache reach its requests, where its API has them.
func TestPromptCache(t *testing.T) {
	explained := func(model string) (string, error) {
		got, err := parse(t, "agent: a\nmodel: "+model+"\n").Agents[0].Explain(t.Context(), &agentfile.Options{Getenv: environment}, "Go.")
		if err != nil {
			return "", err
		}
		return string(got.Body), nil
	}
	for model, want := range map[string]string{
		"{name: openai:m, cache: {ttl: 12h, key: shop}}": `"prompt_cache_key":"shop","prompt_cache_options":{"ttl":"12h"}`,
		"{name: anthropic:m, cache: {ttl: 1h}}":          `"cache_control":{"type":"ephemeral","ttl":"1h"}`,
	} {
		if body, err := explained(model); err != nil || !strings.Contains(body, want) {
			t.Errorf("%s: got %s, %v; want %s", model, body, err, want)
		}
	}
	for model, want := range map[string]string{
		"{name: gemini:m, cache: {ttl: 1h}}":   "cache: Gemini has no such settings",
		"{name: anthropic:m, cache: {key: a}}": "cache.key: Anthropic has no cache keys",
		"{name: openai:m, cache: {ttl: 1h}}":   "OpenAI caches for 30m, 12h or 24h",
	} {
		if _, err := explained(model); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", model, err, want)
		}
	}
}

// The planners that ask no model make their fixed calls.
func TestFixedPlanners(t *testing.T) {
	for _, tt := range []struct{ planner, task, want string }{
		{"SingleActionPlanner\n    config: {tool_name: search, tool_args: {q: 1}}\n", "Anything.", `{"q":1}`},
		{"StaticPlanner\n    config: {keywords: [look]}\n", "Please LOOK.", `{"query":"Please LOOK."}`},
		{"StaticPlanner\n", "Hello.", "No tool is meant for this task: Hello."},
	} {
		text := strings.Replace(frameworkBase, "ReActPlanner\n    config:\n"+gate, tt.planner, 1)
		text = strings.Replace(text, "tools: [search]", "tools: [search, mock_search]", 1)
		text = strings.Replace(text, "  subscribers:", "    - {name: mock_search, type: command, config: {description: Searches., run: [cat], effect: read, input: {type: object}}}\n  subscribers:", 1)
		f := parse(t, text)
		built, err := f.Agents[0].Build(t.Context(), &agentfile.Options{Getenv: environment, Commands: echo})
		if err != nil {
			t.Fatal(err)
		}
		res, err := built.Agent.Run(t.Context(), llm.User(tt.task))
		if err != nil || res.Text() != tt.want {
			t.Errorf("%s: got %q, %v; want %q", tt.planner, res.Text(), err, tt.want)
		}
		built.Close()
	}
}

// The example in agent.framework/v2 searches and then analyzes, with its own programs and without a
// key. Its manager has no findings.
func TestFrameworkExample(t *testing.T) {
	dir := filepath.Join("..", "..", "examples", "agentframework")
	f, err := agentfile.Load(filepath.Join(dir, "agent.yaml"), &agentfile.LoadOptions{Getenv: environment})
	if err != nil {
		t.Fatal(err)
	}
	a := f.Agents[0]
	if got := append(a.Warnings(), a.Check(context.Background(),
		&agentfile.Options{Getenv: environment})...); len(got) > 0 {
		t.Error(got)
	}
	a.Model = agentfile.Models{{Name: "script:" + filepath.Join(dir, "script.json")}}
	a.Override("model")
	built, err := a.Build(t.Context(), &agentfile.Options{Getenv: os.Getenv, Commands: outside.Exec})
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	res, err := built.Agent.Run(t.Context(), llm.User("Find and analyze active users"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range res.Steps {
		for _, x := range s.Executions {
			got = append(got, strings.TrimSpace(x.Result.Text()))
		}
	}
	want := []string{`[{"id":"user1","name":"Alice"},{"id":"user3","name":"Carol"},{"id":"user4","name":"Dan"}]`,
		`{"id":"user1","name":"Alice","status":"active","logins":42,"plan":"team"}`, `{"id":"user3","name":"Carol","status":"active","logins":17,"plan":"free"}`,
		`{"id":"user4","name":"Dan","status":"active","logins":31,"plan":"team"}`, `{"count":3,"sum":90,"mean":30.0}`}
	if diff := cmp.Diff(got, want); diff != "" || res.Stop != pawl.StopAnswer {
		t.Errorf("stop %s; got -, want +\n%s", res.Stop, diff)
	}
	f, err = agentfile.Load(filepath.Join(dir, "team.yaml"), &agentfile.LoadOptions{Getenv: environment})
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Agents[0].Check(context.Background(), &agentfile.Options{Getenv: environment}); len(got) != 0 {
		t.Errorf("the manager: got %v", got)
	}
}
