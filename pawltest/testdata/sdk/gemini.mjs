import { GoogleGenAI } from '@google/genai';
import { png, report, root, schema } from './report.mjs';

const client = new GoogleGenAI({ apiKey: 'test-key', httpOptions: { baseUrl: root } });
const model = process.argv[3] ?? 'gemini-3-flash-preview';
const config = { tools: [{ functionDeclarations: ['look', 'find'].map((name) => ({ name, parametersJsonSchema: schema })) }] };

async function send(contents, stream) {
	if (!stream) {
		const reply = await client.models.generateContent({ model, contents, config });
		const { content, finishReason } = reply.candidates[0];
		return { parts: content.parts ?? [], finish: finishReason, usage: reply.usageMetadata };
	}
	const whole = { parts: [] };
	for await (const chunk of await client.models.generateContentStream({ model, contents, config })) {
		const { content, finishReason } = chunk.candidates[0];
		whole.parts.push(...(content?.parts ?? []));
		whole.finish = finishReason ?? whole.finish;
		whole.usage = chunk.usageMetadata ?? whole.usage;
	}
	return whole;
}

function read({ parts, finish, usage }) {
	return {
		text: parts.filter((p) => p.text && !p.thought).map((p) => p.text).join(''),
		calls: parts.filter((p) => p.functionCall).map((p) => ({ name: p.functionCall.name, args: p.functionCall.args })),
		finish,
		usage: [usage.promptTokenCount, usage.candidatesTokenCount + (usage.thoughtsTokenCount ?? 0)],
	};
}

const image = { inlineData: { mimeType: 'image/png', data: png } };
const user = (...parts) => ({ role: 'user', parts });

await report({
	ask: async (text, stream) => read(await send([user({ text })], stream)),
	see: async (stream) => read(await send([user({ text: 'image' }, image)], stream)),
	go: async (text, results, stream) => {
		const { parts } = await send([user({ text })], stream);
		const answers = parts
			.filter((p) => p.functionCall && results[p.functionCall.name])
			.map(({ functionCall: { id, name } }) => ({ functionResponse: { id, name, response: { result: results[name] }, ...(name === 'find' && { parts: [image] }) } }));
		return read(await send([user({ text }), { role: 'model', parts }, user(...answers)], stream));
	},
});
