// What the official MCP client makes of pawl serve's /mcp: cmd/pawl's test reads it.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [, , root, token] = process.argv;
const all = {};

async function connect(bearer, answer, fetch) {
	const client = new Client({ name: 'test', version: '1' }, { capabilities: answer ? { elicitation: {} } : {} });
	if (answer) client.setRequestHandler(ElicitRequestSchema, async () => answer);
	await client.connect(new StreamableHTTPClientTransport(new URL(root + '/mcp'), { requestInit: { headers: { Authorization: 'Bearer ' + bearer } }, fetch }));
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
// Connections that break, and calls that are stopped, while a tool works after a write.
const call = (client, task, options) => client.callTool({ name: 'clerk', arguments: { task } }, undefined, options).then(text, () => 'error');
const held = (name) => fetch(`${root}/edge/held?name=${name}`);
async function lossy(url, init) {
	const res = await fetch(url, init);
	if (!init?.body?.includes('quiet-lost')) return res;
	const from = res.body.getReader();
	const broken = held('quiet-lost').then(() => { throw new TypeError('the connection broke'); });
	return new Response(new ReadableStream({ async pull(to) {
		const { done, value } = await Promise.race([from.read(), broken]);
		return done ? to.close() : to.enqueue(value);
	} }), res);
}
const loses = await connect(token, undefined, lossy);
const leaves = await connect(token);
const stop = new AbortController();
held('stop-mcp').then(() => stop.abort());
held('quiet-gone').then(() => leaves.close());
[all.both, all.fails, all.failsAfterWrite, all.reconnects, all.gone, all.stopped] = await Promise.all([call(loses, 'both Oslo'), call(loses, 'fail 9'),
	call(loses, 'refund 9'), call(loses, 'slow quiet-lost'), call(leaves, 'slow quiet-gone'), call(loses, 'slow stop-mcp', { signal: stop.signal })]);
await loses.close();
try {
	await connect('nobody-has-this-one');
	all.stranger = 'let in';
} catch (err) {
	all.stranger = err.code ?? err.message;
}
console.log(JSON.stringify(all));
