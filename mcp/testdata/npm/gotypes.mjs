// Calls each tool of a server with the official client, which checks each result against the tool's
// output schema. The calls are lines of standard input; the results are lines of standard output.
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const client = new Client({ name: 'test', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const { tools } = await client.listTools();
const known = new Set(tools.filter((t) => t.outputSchema).map((t) => t.name));
for (const line of readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
	const { name, args } = JSON.parse(line);
	let said = 'no output schema';
	try {
		const res = await client.callTool({ name, arguments: args });
		if (known.has(name)) said = res.isError ? res.content[0].text : 'ok';
	} catch (e) {
		said = String(e);
	}
	console.log(name + ': ' + said);
}
process.exit(0);
