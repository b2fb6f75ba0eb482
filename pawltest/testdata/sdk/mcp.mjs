// What the official MCP client makes of pawl serve's /mcp: cmd/pawl's test reads it.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [, , root, token] = process.argv;
const all = {};

async function connect(bearer, answer) {
	const client = new Client({ name: 'test', version: '1' }, { capabilities: answer ? { elicitation: {} } : {} });
	if (answer) client.setRequestHandler(ElicitRequestSchema, async () => answer);
	await client.connect(new StreamableHTTPClientTransport(new URL(root + '/mcp'), { requestInit: { headers: { Authorization: 'Bearer ' + bearer } } }));
	return client;
}
const text = (r) => ({ text: r.content.map((c) => c.text).join(''), error: r.isError ?? false });

const client = await connect(token, { action: 'accept', content: { approve: true } });
all.server = client.getServerVersion().name;
all.tools = (await client.listTools()).tools.map((t) => t.name);
let progress = 0;
all.looks = text(await client.callTool({ name: 'clerk', arguments: { task: 'look Oslo' } }, undefined, { onprogress: () => progress++ }));
all.progress = progress > 0;
all.pays = text(await client.callTool({ name: 'clerk', arguments: { task: 'pay 5' } }));
await client.close();
const denies = await connect(token, { action: 'decline' });
all.denied = text(await denies.callTool({ name: 'clerk', arguments: { task: 'pay 6' } }));
await denies.close();
const mute = await connect(token);
all.mute = text(await mute.callTool({ name: 'clerk', arguments: { task: 'pay 8' } }));
await mute.close();
try {
	await connect('nobody-has-this-one');
	all.stranger = 'let in';
} catch (err) {
	all.stranger = err.code ?? err.message;
}
console.log(JSON.stringify(all));
