import Anthropic from '@anthropic-ai/sdk';
import { png, report, root, schema } from './report.mjs';

const client = new Anthropic({ apiKey: 'test-key', baseURL: root, maxRetries: 0 });
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } };
const tools = ['look', 'find'].map((name) => ({ name, input_schema: schema }));

async function send(messages, stream) {
	const body = { model: 'claude-opus-4-6', max_tokens: 4096, thinking: { type: 'adaptive' }, messages, tools };
	return stream ? await client.messages.stream(body).finalMessage() : await client.messages.create(body);
}

function read(reply) {
	return {
		text: reply.content.filter((b) => b.type === 'text').map((b) => b.text).join(''),
		calls: reply.content.filter((b) => b.type === 'tool_use').map((b) => ({ name: b.name, args: b.input })),
		finish: reply.stop_reason,
		usage: [reply.usage.input_tokens, reply.usage.output_tokens],
	};
}

await report({
	ask: async (text, stream) => read(await send([{ role: 'user', content: text }], stream)),
	see: async (stream) => read(await send([{ role: 'user', content: [{ type: 'text', text: 'image' }, image] }], stream)),
	go: async (text, results, stream) => {
		const { content } = await send([{ role: 'user', content: text }], stream);
		const answers = content
			.filter((b) => b.type === 'tool_use' && results[b.name])
			.map((b) => ({ type: 'tool_result', tool_use_id: b.id, content: b.name === 'find' ? [{ type: 'text', text: results.find }, image] : results[b.name] }));
		return read(await send([{ role: 'user', content: text }, { role: 'assistant', content }, { role: 'user', content: answers }], stream));
	},
});
