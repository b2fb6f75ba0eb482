// Sends requests that pawl made through the official clients: each line of standard input is {api, root, model, body, stream}. Prints for each a
// line of what the client made of the reply: {text, calls: [{name, args}]}, or {error}.
import { createInterface } from 'node:readline';
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';

const apiKey = 'test-key';

const send = {
	'openai-chat': async ({ root, body, stream }) => {
		const { chat } = new OpenAI({ apiKey, baseURL: root + '/v1', maxRetries: 0 });
		const reply = stream ? await chat.completions.stream({ ...body, stream: true }).finalChatCompletion() : await chat.completions.create(body);
		const { message } = reply.choices[0];
		return { text: message.content ?? '', calls: (message.tool_calls ?? []).map((c) => ({ name: c.function.name, args: JSON.parse(c.function.arguments) })) };
	},
	'openai-responses': async ({ root, body, stream }) => {
		const { responses } = new OpenAI({ apiKey, baseURL: root + '/v1', maxRetries: 0 });
		const reply = stream ? await responses.stream(body).finalResponse() : await responses.create(body);
		const calls = reply.output.filter((item) => item.type === 'function_call');
		return { text: reply.output_text, calls: calls.map((c) => ({ name: c.name, args: JSON.parse(c.arguments) })) };
	},
	'anthropic-messages': async ({ root, body, stream }) => {
		const { messages } = new Anthropic({ apiKey, baseURL: root, maxRetries: 0 });
		const { content } = stream ? await messages.stream(body).finalMessage() : await messages.create(body);
		const of = (type) => content.filter((b) => b.type === type);
		return { text: of('text').map((b) => b.text).join(''), calls: of('tool_use').map((b) => ({ name: b.name, args: b.input })) };
	},
	gemini: async ({ root, model, body, stream }) => {
		const { models } = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: root } });
		const { contents, generationConfig, ...rest } = body;
		const request = { model, contents, config: { ...generationConfig, ...rest } };
		const chunks = [];
		if (stream) for await (const chunk of await models.generateContentStream(request)) chunks.push(chunk);
		else chunks.push(await models.generateContent(request));
		const parts = chunks.flatMap((c) => c.candidates[0].content?.parts ?? []);
		return {
			text: parts.filter((p) => p.text && !p.thought).map((p) => p.text).join(''),
			calls: parts.filter((p) => p.functionCall).map((p) => ({ name: p.functionCall.name, args: p.functionCall.args })),
		};
	},
};

for await (const line of createInterface({ input: process.stdin })) {
	const job = JSON.parse(line);
	if (!job.stream) delete job.body.stream, delete job.body.stream_options;
	try {
		console.log(JSON.stringify(await send[job.api](job)));
	} catch (err) {
		console.log(JSON.stringify({ error: String(err) }));
	}
}
