package turns

// side.go: side requests, which chat programs send besides the conversation, for titles and tags.

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/internal/runs"
)

const (
	// SideName ends the name of a model of which a client wants a side answer.
	SideName = ":side"

	// sideHeader is the header by which a client wants one.
	sideHeader = "X-Pawl-Side"
)

// A sidePrompt is the prompt of a chat program's side request. It is the whole of a conversation:
// system matches the system message, and user the messages of the user, joined by line feeds.
type sidePrompt struct {
	system *regexp.Regexp // nil means that there is no system message
	user   *regexp.Regexp // nil means any text
}

func prompt(system, user string) sidePrompt {
	var p sidePrompt
	if system != "" {
		p.system = regexp.MustCompile("(?s)^" + system)
	}
	if user != "" {
		p.user = regexp.MustCompile("(?s)^" + user)
	}
	return p
}

// sidePrompts are the prompts of programs by their fixed parts: the first sentence, and the end
// where it is fixed too. So a text that quotes a prompt, such as a document, is none. They are
// compiled for the first request, because each start of the command would wait for them.
var sidePrompts = sync.OnceValue(func() []sidePrompt {
	return []sidePrompt{
		// Open WebUI, backend/open_webui/config.py: title, tags, follow-up questions, image,
		// search, completion of the input, emoji, and the choice of functions. Its prompt for a
		// question about documents also begins with "### Task:".
		prompt("", `### Task:\nGenerate a concise\b[^\n]*\btitle\b.*</chat_history>$`),
		prompt("", `### Task:\nGenerate 1-3 broad tags\b.*</chat_history>$`),
		prompt("", `### Task:\nSuggest 3-5 relevant follow-up questions\b.*</chat_history>$`),
		prompt("", `### Task:\nGenerate a detailed prompt for am? image generation task\b.*</chat_history>$`),
		prompt("", `### Task:\nAnalyze the chat history to determine the necessity of generating search queries\b`+
			`.*</chat_history>$`),
		prompt("", "### Task:\nYou are an autocompletion system\\. Continue the text in `<text>`.*#### Output:$"),
		prompt("", "Your task is to reflect the speaker's likely facial expression through a fitting emoji\\..*```$"),
		prompt(`Available Tools: \[.*Your task is to choose and return the correct tool\(s\) from the list of `+
			`available tools based on the query\.`, `Query: `),

		// LibreChat, with its two prompts for titles
		prompt("", `Provide a concise, 5-word-or-less title for the conversation,.*\n\nConversation:\n`),
		prompt("", `Analyze this conversation and provide:\n1\. The detected language of the conversation\n`+
			`2\. A concise title in the detected language\b`),

		// LobeChat: title, summary of a long chat, emoji
		prompt(`You are a professional conversation summarizer\. Generate a concise title\b.*ONLY`, ``),
		prompt(`You're an assistant who's good at extracting key takeaways from conversations and summarizing them\.`,
			`<chat_history>\n.*</chat_history>`),
		prompt(`You are an emoji expert who selects the most appropriate emoji\b`, ``),

		// opencode
		prompt(`You are a title generator\. You output ONLY a thread title\. Nothing else\.`,
			`Generate a title for this conversation:`),
	}
})

// sideTasks are the values of metadata.task in Open WebUI's side requests. Each client may send
// them, so that the frame of its prompts is required too: administrators change what stands in it.
var sideTasks = []string{
	"title_generation", "follow_up_generation", "tags_generation", "emoji_generation", "query_generation",
	"image_prompt_generation", "autocomplete_generation", "function_calling", "moa_response_generation",
}

var sideFrame = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^### Task:\n.*<chat_history>\n.*\n</chat_history>$`)
})

// SideTask returns metadata.task if Open WebUI has such a task; otherwise "".
func SideTask(metadata json.RawMessage) string {
	var m struct {
		Task string `json:"task"`
	}
	if json.Unmarshal(metadata, &m) != nil || !slices.Contains(sideTasks, m.Task) {
		return ""
	}
	return m.Task
}

// isSide reports whether the conversation is the prompt of a known side request.
func (in *Asked) isSide() bool {
	var user []string
	for _, m := range in.Messages {
		if m.Role != llm.RoleUser {
			return false // a chat that goes on
		}
		user = append(user, m.Text())
	}
	text := strings.TrimSpace(strings.Join(user, "\n"))
	system := strings.TrimSpace(in.Extras.System)

	if in.Task != "" && system == "" && sideFrame().MatchString(text) {
		return true
	}
	return slices.ContainsFunc(sidePrompts(), func(p sidePrompt) bool { return p.matches(system, text) })
}

func (p sidePrompt) matches(system, user string) bool {
	switch {
	case p.system == nil && system != "":
		return false
	case p.system != nil && !p.system.MatchString(system):
		return false
	}
	return p.user == nil || p.user.MatchString(user)
}

// sideAgent lets the agent for side requests answer in, if in is one.
func (c *Call) sideAgent(in *Asked) error {
	name, named := strings.CutSuffix(in.Agent, SideName)
	if named && c.Runs.Serves(in.Agent) { // an agent has this name
		name, named = in.Agent, false
	}
	named = named || c.Request.Header.Get(sideHeader) == "1"
	var err error
	switch {
	case named:
		in.Agent, err = c.Runs.SideAgent(name)
	case in.isSide():
		in.Agent += runs.SideSuffix
	default:
		return nil
	}

	// A side request has no tools, also none that its client would execute.
	in.Extras.Tools = nil
	in.Extras.Choice = nil
	limit := cmp.Or(in.Extras.Settings.MaxTokens, runs.SideTokens)
	in.Extras.Settings.MaxTokens = min(limit, runs.SideTokens)
	return err
}
