// Package agentfile turns a YAML file, or the flags of a command line, into agents. Package config
// is its public form, and the command uses it directly.
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
// keys of this package. docs/yaml.md has every key, docs/agent-framework.md the keys of that form.
package agentfile
