import OpenAI from 'openai';
import { png, report, root, schema } from './report.mjs';

const client = new OpenAI({ apiKey: 'test-key', baseURL: root + '/v1', maxRetries: 0 });
const image = { type: 'input_image', detail: 'auto', image_url: 'data:image/png;base64,' + png };
const tools = ['look', 'find'].map((name) => ({ type: 'function', name, parameters: schema, strict: false }));

async function send(input, stream) {
	const body = { model: 'gpt-5-mini', input, tools, store: false, include: ['reasoning.encrypted_content'] };
	return stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
}

function read(reply) {
	return {
		text: reply.output_text,
		calls: reply.output
			.filter((item) => item.type === 'function_call')
			.map((c) => ({ name: c.name, args: JSON.parse(c.arguments) })),
		finish: reply.incomplete_details?.reason ?? reply.status,
		usage: [reply.usage.input_tokens, reply.usage.output_tokens],
	};
}

await report({
	ask: async (text, stream) => read(await send(text, stream)),
	see: async (stream) => read(await send([{ role: 'user', content: [{ type: 'input_text', text: 'image' }, image] }], stream)),
	go: async (text, results, stream) => {
		const { output } = await send(text, stream);
		const input = [{ role: 'user', content: text }];
		for (const item of output) {
			const { parsed_arguments, ...plain } = item; // the stream's helper adds it
			input.push(plain);
		}
		for (const c of output) {
			if (!results[c.name]) continue;
			const said = { type: 'input_text', text: results[c.name] };
			input.push({ type: 'function_call_output', call_id: c.call_id, output: c.name === 'find' ? [said, image] : results[c.name] });
		}
		return read(await send(input, stream));
	},
});
