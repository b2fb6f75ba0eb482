// What the extension's official client makes of a task of pawl serve: cmd/pawl's test reads it.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client';

const [, , root, token, bank, action] = process.argv;
const clientInfo = { name: 'test', version: '1' };
const clientCapabilities = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };
const client = new Client(clientInfo, { capabilities: clientCapabilities, versionNegotiation: { mode: 'auto' } });
const headers = { Authorization: 'Bearer ' + token };
await client.connect(new StreamableHTTPClientTransport(new URL(root + '/mcp'), { requestInit: { headers } }));
const protocolVersion = '2026-07-28';
let id = 0;
const seen = [];
async function rawDispatch(request, options) {
	seen.push(request.method);
	if (request.method === 'tasks/get') await fetch(bank + '/open'); // what the call waits for
	const res = await fetch(root + '/mcp', {
		method: 'POST', signal: options?.signal, body: JSON.stringify({ jsonrpc: '2.0', id: ++id, ...request }),
		headers: { ...headers, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
			'Mcp-Protocol-Version': protocolVersion, 'Mcp-Method': request.method, 'Mcp-Name': request.params.name ?? request.params.taskId },
	});
	const text = await res.text();
	const body = JSON.parse(text.startsWith('{') ? text : text.split('\n').find((l) => l.startsWith('data: {')).slice(6));
	return body.error ? { kind: 'error', error: body } : { kind: 'result', result: body.result };
}
let asked = 0;
const session = createTaskSessionFromClient(client, {
	endpointId: 'pawl', rawDispatch, v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
	onInputRequest: async () => (asked++, { action, content: { approve: true } }),
});
const execution = await session.callTool('clerk', { task: 'Wait, then pay.' });
const { outcome } = await execution.settle();
const result = resultFromTaskOutcome(outcome);
await session.close();
console.log(JSON.stringify({ kind: execution.kind, asked, text: result.content[0].text, error: result.isError ?? false,
	methods: [...new Set(seen)] }));
process.exit(0);
