package config_test

import (
	"fmt"

	"github.com/pawl-go/pawl/config"
)

// A file of agent.framework/v2 is read like any other file. The summary uses the native keys.
func Example_framework() {
	// begin read
	file, err := config.Parse("agent.yaml", []byte(`
apiVersion: agent.framework/v2
kind: Agent
metadata: {name: analyst}
resources:
  inference_gateways: [{name: llm, type: OpenAIGateway, config: {model: gpt-6.1-terra, temperature: 0.5}}]
spec:
  policies: {$preset: simple}
  planner: {type: ReActPlanner, config: {inference_gateway: llm, system_prompt: Be brief.}}
`), nil)
	// end read
	if err != nil {
		fmt.Println(err)
		return
	}
	summary, err := file.YAML("analyst")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", summary)
	// Output:
	// agent: analyst
	// model: openai-chat:gpt-6.1-terra
	// instructions: Be brief.
	// driver: react
	// limits:
	//   rounds: 10
	// settings:
	//   temperature: 0.5
}
