package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// flagGroups are the flags that several commands share. Help, the manual and docs/cli.md show them
// under these titles.
var flagGroups = kong.ExplicitGroups([]kong.Group{
	{Key: "agent", Title: "The agent:"},
	{Key: "tools", Title: "Its tools:"},
	{Key: "limits", Title: "Limits:"},
	{Key: "rules", Title: "What may run:"},
	{Key: "settle", Title: "Answers to calls that wait:"},
	{Key: "transcript", Title: "The transcript:"},
	{Key: "store", Title: "What is kept, and whose it is:"},
	{Key: "durable", Title: "Durable runs:"},
	{Key: "record", Title: "Recordings:"},
	{Key: "telemetry", Title: "Telemetry:"},
})

// addExamples puts the examples of each command behind what its help says.
func addExamples(n *kong.Node, path string) {
	if all := examples[path]; len(all) > 0 {
		text := "Examples:\n\n    " + strings.Join(all, "\n    ")
		n.Detail = strings.TrimSpace(n.Detail + "\n\n" + text)
	}
	for _, child := range n.Children {
		addExamples(child, strings.TrimSpace(path+" "+child.Name))
	}
}

// examples are command lines for each command, by its words. A test parses them.
var examples = map[string][]string{
	"": {
		`pawl demo`,
		`pawl run --model openai:gpt-5-mini --tools file "What is in these files?"`,
	},
	"demo": {`pawl demo`, `pawl demo --data ~/sales --out /tmp/report`},
	"run": {
		`pawl run --model openai:gpt-5-mini --tools file,data "Add up orders.csv by region."`,
		`pawl run agent.yaml "What changed since yesterday?"`,
		`git diff | pawl run agent.yaml -`,
		`pawl run --model ollama:qwen3:4b --durable --run invoice-7 --tools http "Pay invoice 7."`,
	},
	"chat":         {`pawl chat agent.yaml`, `pawl chat --model anthropic:claude-sonnet-4-5 --tools file --thread last`},
	"runs":         {`pawl runs list --state waiting`, `pawl runs show last`},
	"runs list":    {`pawl runs list`, `pawl runs list --state waiting --json`},
	"runs show":    {`pawl runs show last`, `pawl runs show invoice-7 --json`},
	"runs resume":  {`pawl runs resume last`, `pawl runs resume invoice-7 --approve run/1/0`},
	"runs cancel":  {`pawl runs cancel invoice-7`},
	"runs approve": {`pawl runs approve invoice-7 run/1/0`},
	"runs deny":    {`pawl runs deny invoice-7 run/1/0="the customer paid already"`},
	"runs answer":  {`pawl runs answer invoice-7 run/1/0="approved by phone"`},
	"runs verify":  {`pawl runs verify invoice-7`},
	"runs replay":  {`pawl runs replay last`, `pawl runs replay last --system "Be brief."`},
	"runs fork":    {`pawl runs fork invoice-7 --at 1 --tool weather=sunny`},
	"runs diff":    {`pawl runs diff invoice-7 last`},
	"runs delete":  {`pawl runs delete invoice-7`},
	"inbox":        {`pawl inbox`, `pawl inbox approve invoice-7 run/1/0`},
	"inbox list":   {`pawl inbox`, `pawl inbox list --json`},
	"inbox approve": {
		`pawl inbox approve invoice-7 run/1/0`,
		`pawl inbox approve invoice-7 'run/1/0={"euros":70}'`,
	},
	"inbox deny":        {`pawl inbox deny invoice-7 run/1/0="too much"`},
	"inbox answer":      {`pawl inbox answer invoice-7 run/1/0="It rains."`},
	"effects":           {`pawl effects list`},
	"effects list":      {`pawl effects list`, `pawl effects list invoice-7 --state unknown`},
	"effects show":      {`pawl effects show invoice-7 run/1/0`},
	"effects reconcile": {`pawl effects reconcile invoice-7 run/1/0 --happened "paid, reference 4711"`, `pawl effects reconcile invoice-7 run/1/0 --again`},
	"check":             {`pawl check agent.yaml`, `pawl check --explain agent.yaml`},
	"serve":             {`pawl serve agent.yaml`, `pawl serve --token-env PAWL_TOKEN --http 0.0.0.0:8080 clerk.yaml desk.yaml`},
	"worker":            {`pawl worker analyst.yaml`, `pawl worker analyst.yaml --address temporal.example.com:7233 --tls-cert me.pem --tls-key me.key --blobs /mnt/blobs`},
	"init":              {`pawl init`, `pawl init clerk.yaml`},
	"tools":             {`pawl tools list`, `pawl tools show file_read`},
	"tools list":        {`pawl tools list`, `pawl tools list --mcp 'files=npx -y @modelcontextprotocol/server-filesystem .'`},
	"tools lint":        {`pawl tools lint tools.json`},
	"tools show":        {`pawl tools show file_read`},
	"tools call":        {`pawl tools call file_read '{"path":"README.md","limit":3}'`, `pawl tools call --repair --dry-run file_read "{path: 'go.mod',}"`},
	"knowledge":         {`pawl knowledge add docs`, `pawl knowledge search "how long is a lease"`},
	"knowledge add":     {`pawl knowledge add handbook.pdf docs`, `pawl knowledge add --embed openai:text-embedding-3-small docs`},
	"knowledge search":  {`pawl knowledge search "how long is a lease"`},
	"knowledge list":    {`pawl knowledge list`},
	"knowledge delete":  {`pawl knowledge delete handbook.pdf`},
	"memory":            {`pawl memory list`},
	"memory list":       {`pawl memory list --user anna`, `pawl memory list umbrella`},
	"memory forget":     {`pawl memory forget m-1 --user anna`},
	"skills":            {`pawl skills list`},
	"skills list":       {`pawl skills list`},
	"skills show":       {`pawl skills show monthly-report`},
	"skills delete":     {`pawl skills delete monthly-report`},
	"threads":           {`pawl threads list`},
	"threads list":      {`pawl threads list`},
	"threads show":      {`pawl threads show last`},
	"threads delete":    {`pawl threads delete trip-to-oslo`},
	"schedules":         {`pawl schedules list`, `pawl schedules run agent.yaml`},
	"schedules list":    {`pawl schedules list`},
	"schedules show":    {`pawl schedules show s-1`},
	"schedules run":     {`pawl schedules run agent.yaml`},
	"schedules delete":  {`pawl schedules delete s-1`},
	"mcp":               {`pawl mcp list --mcp https://mcp.example.com/mcp`, `pawl mcp serve --tools file --root .`},
	"mcp serve":         {`pawl mcp serve --tools file,data --root .`, `pawl mcp serve analyst.yaml --http 127.0.0.1:8080`},
	"mcp list":          {`pawl mcp list --mcp 'files=npx -y @modelcontextprotocol/server-filesystem .'`},
	"mcp lock":          {`pawl mcp lock --file agent.yaml`},
	"mcp diff":          {`pawl mcp diff --file agent.yaml`},
	"mcp accept":        {`pawl mcp accept --file agent.yaml`},
	"models":            {`pawl models list`, `pawl models show anthropic:claude-sonnet-4-5`},
	"models list":       {`pawl models list --provider anthropic`},
	"models show":       {`pawl models show anthropic:claude-sonnet-4-5`},
	"wire":              {`pawl wire check --api openai-chat < messages.json`},
	"wire encode":       {`pawl wire encode --api anthropic-messages < request.json`},
	"wire decode":       {`pawl wire decode --api openai-responses < reply.json`},
	"wire check":        {`pawl wire check --api openai-chat < messages.json`},
	"hostile":           {`pawl hostile run`},
	"hostile run":       {`pawl hostile run`},
	"hostile serve":     {`pawl hostile serve --addr 127.0.0.1:4010`},
	"doctor":            {`pawl doctor`, `pawl doctor --online agent.yaml`},
	"version":           {`pawl version`},
	"completion":        {`pawl completion bash`},
	"man":               {`pawl man`, `pawl man runs resume`, `pawl man --dir /usr/local/share/man/man1`},
}
