// Package config turns a YAML file, or the flags of a command line, into agents.
//
//	agent: analyst
//	model: openai:gpt-5-mini
//	instructions: Answer from the files here, and name the file.
//	tools: [file, data]
//	approve: {deny: [file_delete]}
//
//	file, err := config.Load("analyst.yaml", nil)
//	built, err := file.Agents[0].Build(ctx, nil)
//	defer built.Close()
//	res, err := built.Agent.Run(ctx, llm.User("…"))
//
//	bytes ─▶ YAML documents ─▶ ${VAR} expanded ─▶ strict reading ─▶ Agent ─Build─▶ pawl.Agent
//	         bounded           on scalars only    Finding: place,   plain   with its
//	                                              message, hint     data    tools
//
// An Agent is plain data and the only input of Build. Flags fill it in as a file does, so both have
// the same meaning; a flag wins over the file by being set in it (Override). Nothing in a file is
// ignored in silence: an unknown key, a value of another type and an unknown name are each a
// Finding with file, line, column and a hint. All findings of a file are reported together.
//
// Variables are expanded in scalars after the file is parsed, so no value can add a key or a list.
// Findings never repeat their values. The author of a file is trusted as the author of a program
// is: the file decides what runs.
//
// Files of kind agent.framework/v2 are read, too: package agentframework translates them into the
// keys above. docs/yaml.md has every key, docs/agent-framework.md the keys of that form.
package config
