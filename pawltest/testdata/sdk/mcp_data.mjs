// What the official MCP client makes of the resources and prompts of pawl serve and pawl mcp serve: cmd/pawl's test reads it.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

const [, , root] = process.argv;
const all = {};
const failed = (p) => p.then(() => 'no error', (err) => err.code ?? err.message);

async function connect(transport) {
	const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } });
	client.updates = [];
	client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => void client.updates.push(n.params.uri));
	await client.connect(transport);
	return client;
}
const http = (token) => connect(new StreamableHTTPClientTransport(new URL(root + '/mcp'), { requestInit: { headers: { Authorization: 'Bearer ' + token } } }));
const uris = async (client) => (await client.listResources()).resources.map((r) => r.uri);
const read = async (client, uri) => (await client.readResource({ uri })).contents[0];
const complete = async (client, ref, name, value) => (await client.complete({ ref, argument: { name, value } })).completion;
const runs = { type: 'ref/resource', uri: 'pawl://runs/{id}' };

// what both servers offer of the file
async function file(client) {
	const out = { tools: (await client.listTools()).tools.map((t) => [t.name, t.title, t.description]) };
	out.files = await uris(client);
	out.text = await read(client, 'pawl://files/clerk/notes.html');
	out.blob = await read(client, 'pawl://files/clerk/dot.png');
	out.outside = [];
	for (const name of ['clerk.yaml', 'link.md', '.hidden.md', '..%2Fnotes.html', '%2Fetc%2Fpasswd', 'none.md']) out.outside.push(await failed(read(client, 'pawl://files/clerk/' + name)));
	out.prompts = (await client.listPrompts()).prompts.map((p) => [p.name, p.description]);
	out.prompt = (await client.getPrompt({ name: 'visit', arguments: { city: '{tone} Oslo', tone: 'short' } })).messages;
	out.skill = (await client.getPrompt({ name: 'greet' })).messages;
	out.missing = await failed(client.getPrompt({ name: 'visit' }));
	out.tones = await complete(client, { type: 'ref/prompt', name: 'visit' }, 'tone', 's');
	return out;
}

const a = await http('aaaaaaaaaaaaaaaa');
all.served = await file(a);
await a.callTool({ name: 'clerk', arguments: { task: 'look ' + 'x'.repeat(200_000) } });
const long = (await complete(a, runs, 'id', 'mcp_')).values[0];
await a.callTool({ name: 'clerk', arguments: { task: 'look test-key' } });
const ids = (await complete(a, runs, 'id', 'mcp_')).values;
const short = ids.find((id) => id !== long);
all.listed = (await uris(a)).filter((u) => u.startsWith('pawl://runs/')).length;
const run = await read(a, 'pawl://runs/' + short);
all.run = [run.mimeType, JSON.parse(run.text).end.stop, run.text.includes('found'), run.text.includes('test-key')];
const artifact = await read(a, `pawl://artifacts/${long}/run/1/0`);
all.artifact = [artifact.mimeType, artifact.text.length];

// a run that waits for a person changes when it gets the answer
let answer;
const asked = new Promise((ask) => a.setRequestHandler(ElicitRequestSchema, () => (ask(), new Promise((say) => { answer = say; }))));
const pays = a.callTool({ name: 'clerk', arguments: { task: 'pay 5' } });
await asked;
const waiting = (await complete(a, runs, 'id', 'mcp_')).values.find((id) => !ids.includes(id));
await a.subscribeResource({ uri: 'pawl://runs/' + waiting });
answer({ action: 'accept', content: { approve: true } });
await pays;
while (a.updates.length === 0) await new Promise((next) => setTimeout(next, 20));
all.updated = [...new Set(a.updates)].map((u) => u === 'pawl://runs/' + waiting);
await a.unsubscribeResource({ uri: 'pawl://runs/' + waiting });

// other tokens: of another tenant, and of the same user without the scope read
for (const [name, token] of [['stranger', 'bbbbbbbbbbbbbbbb'], ['caller', 'cccccccccccccccc']]) {
	const other = await http(token);
	all[name] = {
		runs: (await uris(other)).filter((u) => u.startsWith('pawl://runs/')), ids: (await complete(other, runs, 'id', '')).values,
		read: await failed(read(other, 'pawl://runs/' + short)), artifact: await failed(read(other, `pawl://artifacts/${long}/run/1/0`)),
		subscribe: await failed(other.subscribeResource({ uri: 'pawl://runs/' + short })), file: (await read(other, 'pawl://files/clerk/notes.html')).uri,
	};
	await other.close();
}
await a.close();

const local = await connect(new StdioClientTransport({ command: process.env.PAWL, args: ['mcp', 'serve', 'clerk.yaml'], cwd: process.env.PAWL_DIR, env: { PATH: process.env.PATH, OPENAI_API_KEY: 'test-key' }, stderr: 'ignore' }));
all.local = await file(local);
await local.close();
console.log(JSON.stringify(all));
