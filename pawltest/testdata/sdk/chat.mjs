import OpenAI from 'openai';
import { png, report, root, schema } from './report.mjs';

const client = new OpenAI({ apiKey: 'test-key', baseURL: root + '/v1', maxRetries: 0 });
const tools = ['look', 'find'].map((name) => ({ type: 'function', function: { name, parameters: schema } }));

async function send(messages, stream) {
	const body = { model: 'gpt-5-mini', messages, tools };
	return stream
		? await client.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
		: await client.chat.completions.create(body);
}

function read(reply) {
	const { message, finish_reason } = reply.choices[0];
	return {
		text: message.content ?? '',
		calls: (message.tool_calls ?? []).map((c) => ({ name: c.function.name, args: JSON.parse(c.function.arguments) })),
		finish: finish_reason,
		usage: [reply.usage.prompt_tokens, reply.usage.completion_tokens],
	};
}

await report({
	ask: async (text, stream) => read(await send([{ role: 'user', content: text }], stream)),
	see: async (stream) =>
		read(await send([{ role: 'user', content: [{ type: 'text', text: 'image' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,' + png } }] }], stream)),
	go: async (text, results, stream) => {
		const messages = [{ role: 'user', content: text }];
		const { message } = (await send(messages, stream)).choices[0];
		messages.push(message);
		for (const c of message.tool_calls) {
			if (results[c.function.name]) messages.push({ role: 'tool', tool_call_id: c.id, content: results[c.function.name] });
		}
		return read(await send(messages, stream));
	},
});
