// Package config makes agents of what is written: a YAML file, or the flags of a command line.
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
//	res, err := built.Agent.Run(ctx, pawl.User("…"))
//
//	bytes ──▶ YAML documents ──▶ ${VAR} expanded ──▶ strict reading ──▶ Agent ──Build──▶ pawl.Agent
//	          bounded             on scalars only     Finding: place,    plain    with its
//	                                                  message, hint      data     tools
//
// An Agent is plain data and the only thing that Build knows: flags fill it in as a file does, so that both have the same meaning, and a flag
// stands over the file by being set in it (Override). Nothing that is written is passed over in silence: a key that there is not, a value of another kind, a name
// that nothing has are each a Finding with file, line, column and what was probably meant, and all of a file's findings are told together.
//
// A variable is put into a scalar after the file was read, so no value can add a key or a list to it; its value is never repeated in a finding.
// Whoever writes a file is trusted as whoever writes a program is: it says what runs.
//
// Files of kind agent.framework/v2 are read too: what they say is said in the keys above. docs/yaml.md has every key, docs/agent-framework.md those of that form.
package config
