package agentfile

// keys_data.go: the keys of what lasts longer than a request: the conversation, memories, the store
// and schedules.

import "github.com/pawl-go/pawl/tools/outside"

// History chooses the part of a conversation that is sent. One of its fields is set.
type History struct {
	Word string `yaml:"-"`

	// The last turns.
	Turns *int `yaml:"turns" min:"1"`

	// As window, with this number of tokens as the bound.
	Tokens *int `yaml:"tokens" min:"1"`

	// The same, with notes by the model.
	Summary *int `yaml:"summary" min:"1"`

	// Settings of window. {} means the defaults.
	Window *Window `yaml:"window"`
}

// Window keeps requests within the context window.
type Window struct {
	// The context window in tokens. Default: what the catalogue says of the model; if it does not
	// know it, the first refusal teaches it.
	Tokens int `yaml:"tokens" min:"1000"`

	// The share of the room (the window without a reserve for the reply) above which old results
	// are put away. Default: 0.8.
	High float64 `yaml:"high" above:"0" max:"1"`

	// The share of the room down to which they are. Default: 0.4.
	Low float64 `yaml:"low" above:"0" max:"1"`

	// Rounds at the end that stay whole if they fit. Default: 3.
	Keep int `yaml:"keep" min:"1"`

	// The model writes notes of steps before they leave its sight. Each time costs a request.
	// Default: false.
	Notes bool `yaml:"notes"`

	// The provider shortens the conversation itself, if it can (OpenAI's Responses, Claude): a
	// summary costs about what its request costs. Default: false.
	Native bool `yaml:"native"`
}

// Memory sets how memories of the user are recalled and written.
type Memory struct {
	// Whether the memories that fit a message of the user are recalled before the model is asked.
	// Default: auto.
	Recall string `yaml:"recall" enum:"auto,off"`

	// Who writes: the tool remember (tool), in addition a request after each answer (end), or the
	// same, and a person confirms every memory (ask). Default: tool.
	Write string `yaml:"write" enum:"tool,end,ask"`

	// Who sees what this agent stores: all agents of the user (user), or this agent alone, by its
	// name (agent). Default: user.
	Scope string `yaml:"scope" enum:"user,agent"`
}

// Store names the database with the data between runs, and the owner of the data.
type Store struct {
	// The database: a file, or postgres://USER@HOST/DATABASE, whose password belongs in
	// PGPASSWORD. Default: pawl/pawl.db in the folder for user data (XDG_DATA_HOME, else
	// ~/.local/share).
	DB string `yaml:"db"`

	// The tenant that owns the data. Default: none.
	Tenant string `yaml:"tenant"`

	// The user who owns the data. Default: none.
	User string `yaml:"user"`

	// Search the documents that the tenant shares, too.
	Shared bool `yaml:"shared"`
}

// Side says how side requests are answered: what chat programs ask besides the conversation.
type Side struct {
	// The model that answers them; none gives empty answers. Default: the agent's model.
	Model *Model `yaml:"model"`

	// The requests that it answers: the known prompts of Open WebUI, LibreChat, LobeChat and
	// opencode (known), also each request for the model NAME:side or with the header
	// X-Pawl-Side: 1 (any), or none. Default: known.
	Allow string `yaml:"allow" enum:"known,any,none"`
}

// Schedule is something that is to be done at times.
type Schedule struct {
	// Its name among the agent's schedules. Letters, digits, _ and -.
	Name string `yaml:"name" required:"true"`

	// When: daily 08:00, weekdays 08:00, weekly mon,thu 08:00, monthly last 08:00, a time such as
	// 2026-03-01T08:00:00+01:00, or cron's five fields.
	When string `yaml:"when" required:"true"`

	// The zone of these times, such as Europe/Oslo. Default: the agent's zone.
	Zone string `yaml:"zone"`

	// The agent's task; with calls, together with their results.
	Prompt string `yaml:"prompt"`

	// Calls that are made, in this order. Calls or a prompt are required.
	Calls []ScheduledCall `yaml:"calls"`

	// The reaction to missed times: the last of them, none, or all. Default: once.
	Misfire string `yaml:"misfire" enum:"once,skip,all"`

	// Calls that deliver the report after the task, such as file_write, an http tool that is a
	// webhook, or a command tool that sends mail. {report} in a text of their args is the answer,
	// or the error. They need the same permission as calls.
	Deliver []ScheduledCall `yaml:"deliver"`
}

// ScheduledCall is a call of a tool of the agent's.
type ScheduledCall struct {
	// The tool.
	Tool string `yaml:"tool" required:"true"`

	// Its arguments. Default: none.
	Args outside.JSON `yaml:"args"`
}
